//! What is tried again: on the embedded server, with short waits; and on paused time.

use std::convert::Infallible;
use std::future::{Ready, ready};
use std::task::{Context, Poll};

use http::{Request, Response};
use k8s_openapi::api::events::v1::Event;
use kube_client::Config;
use kube_client::client::Body;
use kube_client::config::{KubeConfigOptions, Kubeconfig};
use kube_informer_apiserver::Server;
use kube_informer_apiserver::faults::{Answer, Match};
use tower_service::Service;

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

/// Answers once that it is busy, then takes everything, and says which request that was.
#[derive(Clone)]
struct BusyOnce {
    requests: usize,
    taken: mpsc::UnboundedSender<usize>,
}

impl Service<Request<Body>> for BusyOnce {
    type Response = Response<Body>;
    type Error = Infallible;
    type Future = Ready<Result<Self::Response, Infallible>>;

    fn poll_ready(&mut self, _: &mut Context<'_>) -> Poll<Result<(), Infallible>> {
        Poll::Ready(Ok(()))
    }

    fn call(&mut self, _: Request<Body>) -> Self::Future {
        self.requests += 1;
        if self.requests == 1 {
            let busy = Response::builder().status(503).body(Body::empty()).unwrap();
            return ready(Ok(busy));
        }
        let _ = self.taken.send(self.requests);
        let event = serde_json::to_vec(&Event::default()).unwrap();
        ready(Ok(Response::new(Body::from(event))))
    }
}

#[tokio::test(start_paused = true)]
async fn what_is_queued_when_all_handles_are_gone_has_time_for_a_second_try() {
    let (taken, mut requests) = mpsc::unbounded_channel();
    let client = Client::new(BusyOnce { requests: 0, taken }, "default");
    let recorder = Recorder::with(client, "tester", Tries::default());
    recorder.normal(about("a"), "Reason", "Action", "note");
    drop(recorder);
    assert_eq!(requests.recv().await, Some(2));
    assert_eq!(requests.recv().await, None, "and nothing is left of it");
}
