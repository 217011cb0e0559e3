//! What is tried again, on the embedded server, with short waits.

use kube_client::Config;
use kube_client::config::{KubeConfigOptions, Kubeconfig};
use kube_informer_apiserver::Server;
use kube_informer_apiserver::faults::{Answer, Match};

use super::task::Tries;
use super::*;

const SOON: Duration = Duration::from_secs(60);

async fn recorder(server: &Server) -> Recorder {
    let kubeconfig = Kubeconfig::from_yaml(&server.kubeconfig()).unwrap();
    let mut config = Config::from_custom_kubeconfig(kubeconfig, &KubeConfigOptions::default()).await.unwrap();
    config.default_retry = false;
    let tries = Tries { times: 3, apart: Duration::from_millis(5) };
    Recorder::with(Client::try_from(config).unwrap(), "tester", tries)
}

fn about(name: &str) -> About {
    let (namespace, name) = (Some("default".to_owned()), Some(name.to_owned()));
    About(ObjectReference { namespace, name, ..ObjectReference::default() })
}

#[tokio::test]
async fn what_fails_is_tried_again_and_then_given_up() {
    let server = Server::builder().start().await.unwrap();
    let faults = server.faults();
    let recorder = recorder(&server).await;
    let busy = faults.on(Match::write()).times(2).answer(Answer::too_many_requests(1));
    recorder.normal(about("a"), "Reason", "Action", "note");
    busy.wait_applied(2).await;
    let broken = faults.on(Match::write()).skip(1).times(3).answer(Answer::internal_error());
    recorder.normal(about("b"), "Reason", "Action", "note");
    broken.wait_applied(3).await;
    recorder.normal(about("c"), "Reason", "Action", "note");
    let stats = recorder.shutdown(SOON).await;
    assert_eq!((stats.created, stats.failed, stats.dropped), (2, 1, 0), "{stats:?}");
}

#[tokio::test]
async fn an_answer_that_was_lost_makes_no_second_event() {
    let server = Server::builder().start().await.unwrap();
    let recorder = recorder(&server).await;
    let lost = server.faults().on(Match::write()).once().cut_after_bytes(1);
    recorder.normal(about("a"), "Reason", "Action", "note");
    lost.wait_applied(1).await;
    let stats = recorder.shutdown(SOON).await;
    assert_eq!((stats.created, stats.failed), (1, 0), "{stats:?}");
}
