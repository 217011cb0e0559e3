use http::HeaderValue;

use super::*;

fn headers(pairs: &[(http::HeaderName, &str)]) -> HeaderMap {
    pairs.iter().map(|(name, value)| (name.clone(), HeaderValue::from_str(value).unwrap())).collect()
}

fn access() -> Access {
    let hosts = vec!["feed.example.com".to_owned()];
    Access::new(Some(Token::new("0123456789abcdef")), hosts, vec!["https://dash.example.com".to_owned()])
}

#[test]
fn the_server_may_be_called_by_addresses_and_allowed_names_only() {
    for host in [
        "127.0.0.1",
        "127.0.0.1:80",
        "localhost:8080",
        "LOCALHOST",
        "[::1]:80",
        "[::1]",
        "10.1.2.3:9",
        "feed.example.com:1",
    ] {
        assert_eq!(access().check_host(&headers(&[(HOST, host)])), Ok(()), "{host}");
    }
    for host in [
        "evil.example.com",
        "localhost.evil.com",
        "127.0.0.1.evil.com",
        "",
        "feed.example.com.evil.com",
        "x@localhost",
    ] {
        let refused = access().check_host(&headers(&[(HOST, host)])).unwrap_err();
        assert_eq!((refused.status, refused.why), (403, Refusal::Host), "{host}");
    }
    assert!(access().check_host(&HeaderMap::new()).is_err());
}

#[test]
fn pages_of_other_sites_may_not_connect() {
    let check = |origin: &str| access().check_origin(&headers(&[(HOST, "127.0.0.1:80"), (ORIGIN, origin)]));
    assert_eq!(access().check_origin(&headers(&[(HOST, "127.0.0.1:80")])), Ok(()));
    assert_eq!(check("http://127.0.0.1:80"), Ok(()));
    assert_eq!(check("https://dash.example.com"), Ok(()));
    for origin in [
        "null",
        "",
        "http://127.0.0.1:81",
        "http://localhost:80",
        "http://evil.example.com",
        "://",
        "https://dash.example.com.evil.com",
    ] {
        assert_eq!(check(origin).unwrap_err().why, Refusal::Origin, "{origin}");
    }
}

#[test]
fn the_token_is_wanted_in_a_header_or_as_a_subprotocol() {
    let check = |pairs: &[(http::HeaderName, &str)]| {
        access().check_token(&headers(pairs)).map_err(|refused| refused.status)
    };
    assert_eq!(check(&[(AUTHORIZATION, "Bearer 0123456789abcdef")]), Ok(()));
    assert_eq!(check(&[(AUTHORIZATION, "bearer  0123456789abcdef")]), Ok(()));
    let bearer = bearer_subprotocol("0123456789abcdef");
    assert_eq!(check(&[(SEC_WEBSOCKET_PROTOCOL, &format!("{SUBPROTOCOL}, {bearer}"))]), Ok(()));
    assert_eq!(check(&[]), Err(401));
    for given in [
        "Bearer",
        "Bearer ",
        "0123456789abcdef",
        "Basic 0123456789abcdef",
        "Bearer 0123456789abcdeF",
        "Bearer 0123456789abcdef0",
    ] {
        assert_eq!(check(&[(AUTHORIZATION, given)]), Err(401), "{given}");
    }
    assert_eq!(check(&[(SEC_WEBSOCKET_PROTOCOL, "kube-informer.bearer.")]), Err(401));
    assert_eq!(Access::new(None, vec![], vec![]).check_token(&HeaderMap::new()), Ok(()));
}

#[test]
fn a_token_is_never_shown() {
    assert!(!format!("{:?}", access()).contains("0123"));
}

#[test]
fn tokens_that_could_be_guessed_or_not_be_sent_are_none() {
    for (token, problem) in [
        ("", "empty"),
        ("short", "short"),
        ("0123456789 abcdef", "characters"),
        ("0123456789abcdeé", "characters"),
    ] {
        assert!(Token::new(token).problem().is_some_and(|said| said.contains(problem)), "{token}");
    }
    assert_eq!(Token::new("0123456789abcdef").problem(), None);
}

#[test]
fn clients_speak_ours_or_anything() {
    let speaks =
        |named: &str| speaks(&headers(&[(SEC_WEBSOCKET_PROTOCOL, named)])).map_err(|refused| refused.status);
    assert_eq!(super::speaks(&HeaderMap::new()), Ok(Speaks::Anything));
    assert_eq!(speaks("graphql-ws, kube-informer.v1.json"), Ok(Speaks::Ours));
    assert_eq!(speaks("kube-informer.bearer.abc"), Ok(Speaks::Anything));
    assert_eq!(speaks("kube-informer.v2.json"), Err(400));
}

#[test]
fn base64_is_as_the_standard_says() {
    for (plain, encoded) in [
        ("", ""),
        ("f", "Zg"),
        ("fo", "Zm8"),
        ("foo", "Zm9v"),
        ("foob", "Zm9vYg"),
        ("\u{fb}\u{ff}", "w7vDvw"),
    ] {
        assert_eq!(base64url(plain.as_bytes()), encoded);
    }
}
