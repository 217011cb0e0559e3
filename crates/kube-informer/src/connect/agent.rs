//! What a program calls itself in its requests. Servers write it into their logs, and the part before the slash into
//! `managedFields`, where a write names no field manager.

use http::HeaderValue;
use http::header::USER_AGENT;
use kube_client::Config;

/// Adds the name that was chosen, or that of the program, unless the configuration has one.
pub(super) fn introduce(config: &mut Config, chosen: Option<&str>) {
    if config.headers.iter().any(|(name, _)| *name == USER_AGENT) {
        return;
    }
    let chosen = chosen.and_then(header);
    let program = || {
        let path = std::env::args_os().next()?;
        header(&default(&std::path::Path::new(&path).file_name()?.to_string_lossy()))
    };
    if let Some(agent) = chosen.or_else(program) {
        config.headers.push((USER_AGENT, agent));
    }
}

/// `shop-operator/kube-informer-0.1.0 (linux/x86_64)`. Which version the program has, only the program knows.
fn default(program: &str) -> String {
    let fits = |c: char| c.is_ascii_alphanumeric() || "!#$%&'*+-.^_`|~".contains(c);
    let program: String = program.chars().map(|c| if fits(c) { c } else { '-' }).collect();
    let (version, os, machine) = (env!("CARGO_PKG_VERSION"), std::env::consts::OS, std::env::consts::ARCH);
    format!("{program}/kube-informer-{version} ({os}/{machine})")
}

/// What of a text fits into a header; nothing where nothing does.
fn header(text: &str) -> Option<HeaderValue> {
    let text: String = text.chars().filter(|c| matches!(c, ' '..='~')).collect();
    let text = text.trim();
    if text.is_empty() { None } else { HeaderValue::from_str(text).ok() }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn introduced(headers: &[&str], chosen: Option<&str>) -> Vec<String> {
        let mut config = Config::new(http::Uri::from_static("http://127.0.0.1:1"));
        for value in headers {
            config.headers.push((USER_AGENT, HeaderValue::from_str(value).unwrap()));
        }
        introduce(&mut config, chosen);
        config.headers.iter().map(|(_, value)| value.to_str().unwrap().to_owned()).collect()
    }

    #[test]
    fn what_was_chosen_goes_before_the_program_and_what_is_configured_before_both() {
        assert_eq!(introduced(&[], Some("shop/1.2")), ["shop/1.2"]);
        assert_eq!(introduced(&["mine/1"], Some("shop/1.2")), ["mine/1"]);
        let own = introduced(&[], None);
        assert!(own[0].contains(concat!("/kube-informer-", env!("CARGO_PKG_VERSION"), " (")), "{own:?}");
        // What fits into no header is left out; where nothing is left, it is the program.
        assert_eq!(introduced(&[], Some("a\r\nb: c/1 ä")), ["ab: c/1"]);
        assert_eq!(introduced(&[], Some("\n")), own);
    }

    #[test]
    fn the_part_before_the_slash_is_the_programs_name() {
        for (program, name) in
            [("shop-operator", "shop-operator"), ("my shop/é", "my-shop--"), ("a(b)", "a-b-")]
        {
            assert_eq!(default(program).split('/').next(), Some(name));
        }
    }
}
