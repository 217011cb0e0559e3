//! Names of images, as short as they can be told apart.

use super::cut::head;

/// How much of a digest tells it apart.
const DIGEST: usize = 12;

/// Longer names are cut.
const LONGEST: usize = 100;

/// `repository:tag@algorithm:digest`.
struct Image<'a> {
    repository: &'a str,
    tag: Option<&'a str>,
    digest: Option<&'a str>,
}

impl<'a> Image<'a> {
    fn parse(text: &'a str) -> Self {
        let (name, digest) = text.split_once('@').map_or((text, None), |(name, digest)| (name, Some(digest)));
        // A colon before a slash is one of a port.
        let tagged = name.rsplit_once(':').filter(|(_, tag)| !tag.contains('/'));
        let (repository, tag) = tagged.map_or((name, None), |(repository, tag)| (repository, Some(tag)));
        Self { repository, tag, digest }
    }

    /// Tag and digest. Without either, it is the latest.
    fn version(&self) -> String {
        match (self.tag, self.digest.map(short)) {
            (Some(tag), Some(digest)) => format!("{tag}@{digest}"),
            (Some(tag), None) => tag.to_owned(),
            (None, Some(digest)) => digest,
            (None, None) => "latest".to_owned(),
        }
    }
}

fn short(digest: &str) -> String {
    match digest.split_once(':') {
        Some((algorithm, hex)) => format!("{algorithm}:{}", head(hex, DIGEST)),
        None => head(digest, DIGEST).to_owned(),
    }
}

/// The name, with its digest shortened.
pub(super) fn whole(text: &str) -> String {
    let image = Image::parse(text);
    let tag = image.tag.map(|tag| format!(":{tag}")).unwrap_or_default();
    let digest = image.digest.map(|digest| format!("@{}", short(digest))).unwrap_or_default();
    bounded(format!("{}{tag}{digest}", image.repository))
}

/// `1.4→1.5` where the repository is the same; otherwise both names.
pub(super) fn change(old: &str, new: &str) -> String {
    let (from, to) = (Image::parse(old), Image::parse(new));
    if from.repository != to.repository {
        return format!("{}→{}", whole(old), whole(new));
    }
    // A digest that came beside the same tag is what is new.
    let (from, to) = match (from.tag == to.tag, from.digest, to.digest) {
        (true, Some(from), Some(to)) => (short(from), short(to)),
        _ => (from.version(), to.version()),
    };
    if from == to {
        return format!("{}→{}", bounded(old.to_owned()), bounded(new.to_owned()));
    }
    format!("{}→{}", bounded(from), bounded(to))
}

fn bounded(text: String) -> String {
    if text.len() <= LONGEST { text } else { format!("{}…", head(&text, LONGEST)) }
}
