//! The same in protobuf, which only the real server has.

use kube_informer_testbed::cluster::Cluster;
use kube_informer_testbed::proxy::Format;
use kube_informer_testbed::require;

use super::*;

/// What every document begins with. Then come, as fields of bytes, what it is (1), the object (2), and more.
const MAGIC: &[u8] = b"k8s\0";

async fn begin(cluster: Cluster, test: &str) -> Result<Play> {
    let play = Play::begin_in(Encoding::Protobuf, Place::real(cluster, test).await?).await?;
    assert_eq!(live(&play.informer).await.encoding, Some(Encoding::Protobuf));
    Ok(play)
}

/// A field of bytes.
fn field(number: u8, bytes: &[u8]) -> Vec<u8> {
    let mut field = vec![number << 3 | 2];
    let mut length = bytes.len();
    while length > 0x7f {
        field.push(length as u8 | 0x80);
        length >>= 7;
    }
    field.push(length as u8);
    [field.as_slice(), bytes].concat()
}

/// The first field of a message, which is one of bytes, and what comes behind it.
fn first(message: &[u8]) -> (&[u8], &[u8]) {
    let digits = message[1..].iter().position(|byte| byte & 0x80 == 0).unwrap() + 1;
    let (head, rest) = message.split_at(1 + digits);
    let length = head[1..].iter().rev().fold(0, |length, digit| length << 7 | usize::from(digit & 0x7f));
    rest.split_at(length)
}

/// A document with something more at the end of its object.
fn append(document: &[u8], more: &[u8]) -> Vec<u8> {
    let (kind, rest) = first(document.strip_prefix(MAGIC).unwrap());
    let (object, rest) = first(rest);
    [MAGIC, &field(1, kind), &field(2, &[object, more].concat()), rest].concat()
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_odd_bookmark_is_said_and_not_believed() -> Result<()> {
    let cluster = require!(Cluster::shared().await, else Ok(()));
    let of = |kind: &str, metadata: &[u8]| {
        let kind = field(1, &[field(1, b"v1"), field(2, kind.as_bytes())].concat());
        [MAGIC.to_vec(), kind, field(2, &field(1, metadata))].concat()
    };
    let far = FAR.to_string();
    let odd = [
        (of("Pod", &field(6, far.as_bytes())), "expected v1 ConfigMap, not v1 Pod"),
        (of("ConfigMap", &[]), "a bookmark without a version"),
        (of("ConfigMap", &[6 << 3, 7]), "resourceVersion"),
    ];
    odd_bookmarks(begin(cluster, "odd bookmarks in protobuf").await?, odd).await
}

/// The data of a config map is a number.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_object_that_can_never_be_read_harms_no_other() -> Result<()> {
    let cluster = require!(Cluster::shared().await, else Ok(()));
    let play = begin(cluster, "never read in protobuf").await?;
    never_read(play, |object| append(object, &[2 << 3, 7])).await
}

/// The field 99, which no table knows.
const UNKNOWN: &[u8] = &[0x9a, 0x06, 3, b'n', b'e', b'w'];

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_event_with_an_unknown_field_is_followed_by_a_list_in_json_and_nothing_is_lost() -> Result<()> {
    let cluster = require!(Cluster::shared().await, else Ok(()));
    let play = begin(cluster, "unknown field").await?;
    let proxy = &play.stage.proxy;
    let newer = Events::modified().named("bad").when(|event| event.format() == Format::Protobuf);
    let fault = proxy
        .on_all(Match::watch())
        .edit_events(newer, |event| event.set_object(append(event.object(), UNKNOWN)));
    play.stage.change("bad", "2").await?;
    play.stage.change("good", "2").await?;
    play.stage.config_maps(&["comes"], "1").await?;
    health(&play.informer, "listed in JSON", |health| health.relists.encoding == 1).await;
    play.stage.settled(&play.informer, MADE_HERE, &[&play.told[0], &play.told[1]]).await;
    for told in &play.told {
        let told = told.told();
        assert_eq!((told.added, told.updated, told.deleted, told.gaps), (3, 2, 0, 0), "{told:#?}");
    }

    // The next one would be read.
    play.stage.change("bad", "3").await?;
    play.until("bad", "3").await;
    let health = live(&play.informer).await;
    assert_eq!((health.encoding, health.unreadable), (Some(Encoding::Json), 0));
    let relists = health.relists.by_reason().map(|(_, count)| count);
    assert_eq!(relists, [1, 0, 0, 0, 0, 1], "the first, and the one of the encoding: {health:#?}");
    assert_eq!(fault.events(), 1);
    let asked: Vec<bool> =
        play.stage.watches("configmaps").iter().map(|watch| watch.accept.contains("protobuf")).collect();
    assert_eq!(asked, [true, false], "and never again for protobuf");
    play.end().await
}
