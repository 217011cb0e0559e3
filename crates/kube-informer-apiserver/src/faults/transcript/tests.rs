use super::*;

fn get(path: &str, query: &str) -> Request {
    Request { path: path.into(), query: query.into(), ..Request::arriving(Method::GET) }
}

#[test]
fn verbs_are_told_as_the_server_tells_them() {
    for (path, query, verb) in [
        ("/api/v1/pods", "", Verb::List),
        ("/api/v1/pods", "watch=0&limit=5", Verb::List),
        ("/api/v1/pods", "limit=5&watch=1", Verb::Watch),
        ("/api/v1/namespaces/a/pods", "watch=true", Verb::Watch),
        ("/api/v1/namespaces/a/pods/b", "", Verb::Get),
        ("/api/v1/namespaces", "", Verb::List),
        ("/api/v1/namespaces/a", "", Verb::Get),
        ("/api/v1/namespaces/a/status", "", Verb::Get),
        ("/apis/apps/v1/deployments", "", Verb::List),
        ("/apis/apps/v1/namespaces/a/deployments/b/scale", "", Verb::Get),
        ("/apis/apps/v1", "", Verb::Get),
        ("/api/v1", "", Verb::Get),
        ("/version", "", Verb::Get),
    ] {
        assert_eq!(get(path, query).verb(), verb, "{path}?{query}");
    }
}

#[test]
fn parameters_are_decoded() {
    let request = get("/api/v1/pods", "labelSelector=app%3Dweb%2Ctier+in+%28a%29&resourceVersion=&x");
    assert_eq!(request.param("labelSelector").unwrap(), "app=web,tier in (a)");
    assert_eq!(request.param("x").unwrap(), "");
    assert_eq!(request.param("y"), None);
    assert_eq!(request.resource_version(), None);
}

#[test]
fn the_oldest_ended_records_are_forgotten_and_open_ones_kept() {
    let requests = Requests::new(2);
    let open = requests.begin(get("/open", ""));
    for path in ["/1", "/2", "/3"] {
        requests.begin(get(path, "")).end(End::Complete);
    }
    let kept: Vec<String> = requests.all().into_iter().map(|request| request.path).collect();
    assert_eq!((kept, requests.forgotten()), (vec!["/open".to_owned(), "/3".to_owned()], 2));
    assert_eq!(requests.open().len(), 1);
    open.end(End::Complete);
    assert_eq!(requests.open().len(), 0);
}

#[test]
fn the_first_end_counts_and_a_dropped_recorder_says_whether_the_client_left_early() {
    let requests = Requests::new(10);
    let cut = requests.begin(get("/cut", ""));
    cut.end(End::Cut);
    cut.end(End::Complete);
    drop(cut);
    drop(requests.begin(get("/left", "")));
    for bytes in [5, 6] {
        let read = requests.begin(get("/read", ""));
        read.answered(200, "text/plain", Some(6));
        read.passed(bytes);
    }
    let ends: Vec<_> = requests.all().into_iter().map(|request| request.end.unwrap()).collect();
    assert_eq!(ends, [End::Cut, End::ClientGone, End::ClientGone, End::Complete]);
}

#[tokio::test]
async fn what_is_awaited_and_never_comes_is_an_error_that_shows_what_came() {
    let requests = Requests::new(10).within(Duration::from_millis(10));
    drop(requests.begin(get("/came", "a=b")));
    let error = requests.wait_for(|request| request.path == "/awaited").await.unwrap_err().to_string();
    assert!(error.contains("GET /came?a=b"), "{error}");
}
