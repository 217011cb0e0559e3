//! What a block that is run must not say, as it would be run otherwise than people think, or where it does harm.

use super::control_plane::PLANE;

/// Commands of the control plane that have a folder.
const WITH_FOLDER: [&str; 4] = ["up", "down", "status", "kubeconfig"];

/// What is wrong with a script.
pub(super) fn mistakes(script: &str) -> impl Iterator<Item = String> {
    let bare = bare(script);
    let in_the_background = alone(&bare, '&', "&<>").then(|| {
        "nobody notices when what `&` starts has ended: let it run `until output`, and the rest `in another terminal`".to_owned()
    });
    let pipe = alone(&bare, '|', "|>").then(|| {
        "nobody notices when the command before a `|` fails: leave it out, or write to a file".to_owned()
    });
    let named = script.split("localhost:").skip(1).any(|rest| rest.starts_with(|c: char| c.is_ascii_digit()));
    let named =
        named.then(|| "ports of `localhost` are not exchanged for free ones: call it 127.0.0.1".to_owned());
    let plane = script.lines().any(is_of_another_plane).then(|| {
        format!("it would be the control plane of whoever runs the tests: write `--dir {PLANE}`, which is exchanged")
    });
    [in_the_background, pipe, named, plane].into_iter().flatten()
}

/// Whether the character stands somewhere without one of these beside it: `&` is neither `&&` nor part of `>&`.
fn alone(text: &str, character: char, beside: &str) -> bool {
    text.match_indices(character).any(|(at, found)| {
        let (before, after) = (&text[..at], &text[at + found.len()..]);
        !before.ends_with(|c: char| beside.contains(c)) && !after.starts_with(|c: char| beside.contains(c))
    })
}

fn is_of_another_plane(line: &str) -> bool {
    let (_, command) = line.split_once("xtask control-plane ").unwrap_or_default();
    WITH_FOLDER.contains(&command.split_whitespace().next().unwrap_or_default())
        && !command.contains(&format!("--dir {PLANE}"))
}

/// The script without what means nothing to the shell: what is quoted, comments, documents between its lines.
fn bare(script: &str) -> String {
    let mut bare = String::new();
    let mut quote = None;
    let mut lines = script.lines();
    while let Some(line) = lines.next() {
        let begin = bare.len();
        let (mut characters, mut before) = (line.chars(), ' ');
        while let Some(c) = characters.next() {
            match (quote, c) {
                (None, '#') if before.is_whitespace() => break,
                (Some('"') | None, '\\') => {
                    characters.next();
                }
                (Some(open), _) if open == c => quote = None,
                (Some(_), _) => {}
                (None, '"' | '\'') => quote = Some(c),
                (None, _) => bare.push(c),
            }
            before = c;
        }
        bare.push('\n');
        if bare[begin..].contains("<<")
            && let Some((_, word)) = line.split_once("<<")
        {
            let end = word.trim_start_matches('-').split_whitespace().next().unwrap_or_default();
            let end = end.trim_matches(['"', '\'', '\\']);
            // It is found, or everything is part of it.
            let _ = lines.find(|line| line.trim_start_matches('\t') == end);
        }
    }
    bare
}

#[cfg(test)]
mod tests {
    use super::*;

    fn count(script: &str) -> usize {
        mistakes(script).count()
    }

    #[test]
    fn what_nobody_would_notice_is_a_mistake() {
        for script in [
            "server &",
            "server --flag \\\n  --other &\nclient",
            "server & client",
            "server > log 2>&1 &",
            "cat x | grep y",
            "echo 'a' |\n  grep a",
            "cat <<END | grep x\nx\nEND",
        ] {
            assert_eq!(count(script), 1, "{script}");
        }
    }

    #[test]
    fn what_only_looks_like_it_is_none() {
        for script in [
            "a && b || c",
            "a > log 2>&1",
            "a 2>&1 >| log",
            "curl 'http://127.0.0.1:1/?a&b|c' \"x & y | z\"",
            "a \\& b \\| c",
            "a # b & c | d",
            "kubectl apply -f - <<END\ntext: |\n  a & b\nEND\nkubectl get pods",
            "kubectl apply -f - <<-'END'\na | b\n\tEND",
            "echo \"a\n& b |\nc\" d",
        ] {
            assert_eq!(mistakes(script).next(), None, "{script}");
        }
        assert_eq!(count("cat <<END\n|\nEND\na | b"), 1, "a document ends");
    }

    #[test]
    fn ports_are_those_of_an_address() {
        assert_eq!(count("curl http://localhost:8080/"), 1);
        assert_eq!(count("curl 'http://localhost:8080/'"), 1);
        assert_eq!(count("curl http://127.0.0.1:8080/ # localhost"), 0);
    }

    #[test]
    fn a_control_plane_is_in_the_folder_that_is_exchanged() {
        assert_eq!(count("cargo xtask control-plane up"), 1);
        assert_eq!(count("cargo xtask control-plane down --dir elsewhere"), 1);
        assert_eq!(count(&format!("cargo xtask control-plane status --dir {PLANE}")), 0);
        assert_eq!(count("cargo xtask control-plane build"), 0);
    }
}
