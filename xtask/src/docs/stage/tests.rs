use kube_informer_testbed::eventually::eventually;
use kube_informer_testbed::process::Identity;

use super::*;

fn block(script: &str, action: Action, output: &[&str]) -> Block {
    Block { line: 1, script: script.into(), action, output: output.iter().map(|s| (*s).to_owned()).collect() }
}

const fn run(place: Place) -> Action {
    Action::Run { place, until_output: false }
}

const fn until_output(place: Place) -> Action {
    Action::Run { place, until_output: true }
}

const LONG: Duration = Duration::from_secs(60);

fn stage(limit: Duration) -> Stage {
    let here = Path::new(env!("CARGO_MANIFEST_DIR"));
    Stage::new(here, limit).with_binary(here.join("src/docs/stand-in.sh"))
}

/// Blocks run with the stand-in; why each one failed.
async fn played_on(mut stage: Stage, scene: &[Block]) -> Vec<Option<String>> {
    let why = |outcome| match outcome {
        Outcome::Passed => None,
        Outcome::Failed(why) => Some(why),
        Outcome::LeftOut(unavailable) => panic!("{unavailable}"),
    };
    stage.play(scene).await.into_iter().map(why).collect()
}

async fn played(limit: Duration, scene: &[Block]) -> Vec<Option<String>> {
    played_on(stage(limit), scene).await
}

/// Why it failed, where nobody has time.
async fn in_a_hurry(block: Block) -> Option<String> {
    played_on(stage(LONG).with_patience(Duration::from_millis(300)), &[block]).await.swap_remove(0)
}

async fn outcome(block: Block) -> Option<String> {
    played(LONG, &[block]).await.swap_remove(0)
}

#[tokio::test]
async fn a_block_that_fails_anywhere_fails() {
    assert_eq!(outcome(block("true\ntrue", run(Place::Here), &[])).await, None);
    let why = outcome(block("false\ntrue", run(Place::Here), &[])).await.unwrap();
    assert!(why.contains("exit status: 1"), "{why}");
}

#[tokio::test]
async fn a_block_whose_output_differs_fails() {
    assert_eq!(outcome(block("echo one; echo two", run(Place::Here), &["two"])).await, None);
    let why = outcome(block("echo one", run(Place::Here), &["two"])).await.unwrap();
    assert!(why.contains("lacks the line `two`"), "{why}");
}

#[tokio::test]
async fn a_command_that_does_not_end_is_stopped_at_its_output() {
    let until = |output| block("echo listening; sleep 600", until_output(Place::Here), output);
    assert_eq!(outcome(until(&["listening"])).await, None);
    let why = played(Duration::from_millis(300), &[until(&["never"])]).await.swap_remove(0).unwrap();
    assert!(why.contains("`never`") && why.contains("its limit"), "{why}");
}

/// A program that does this at SIGTERM, and nothing else.
fn at_the_end(does: &str) -> String {
    format!("sh -c 'trap \"{does}\" TERM; echo ready; while :; do sleep 0.05; done'")
}

#[tokio::test]
async fn a_command_that_fails_when_it_is_stopped_fails() {
    for (code, passes) in [(0, true), (130, true), (143, true), (1, false), (101, false)] {
        let script = at_the_end(&format!("exit {code}"));
        let why = outcome(block(&script, until_output(Place::Here), &["ready"])).await;
        let failure = format!("told to end, it ended with exit status: {code}");
        assert_eq!(why, (!passes).then_some(failure), "{code}");
    }
}

#[tokio::test]
async fn a_command_that_does_not_end_when_it_is_stopped_fails() {
    let why = in_a_hurry(block(&at_the_end(""), until_output(Place::Here), &["ready"])).await;
    assert!(why.as_deref().is_some_and(|why| why.contains("and was killed")), "{why:?}");
}

#[tokio::test]
async fn a_command_that_fails_after_its_output_fails() {
    let scene = [
        block("echo ready; exit 1", until_output(Place::Here), &["ready"]),
        block("sleep 600", run(Place::OtherTerminal), &[]),
    ];
    let whys = played(LONG, &scene).await;
    assert_eq!(whys[0].as_deref(), Some("exit status: 1"));
    assert!(whys[1].is_some());
}

#[tokio::test]
async fn what_a_block_leaves_behind_is_ended_however_it_ends() {
    let seen = Seen::new("left");
    for (end, passes) in [("true", true), ("exit 1", false)] {
        let script = format!("sleep 600 & echo $! > {}; {end}", seen.0.display());
        let why = outcome(block(&script, run(Place::Here), &[])).await;
        assert_eq!(why.is_none(), passes, "{why:?}");
        eventually("it is gone", LONG, async || (!seen.runs()).then_some(())).await;
    }
}

/// A file for what a block has seen.
struct Seen(PathBuf);

impl Seen {
    fn new(name: &str) -> Self {
        let path = std::env::temp_dir().join(format!("xtask-docs-{name}-{}", std::process::id()));
        let _ = std::fs::remove_file(&path);
        Self(path)
    }

    fn lines(&self) -> Vec<String> {
        std::fs::read_to_string(&self.0).unwrap().lines().map(str::to_owned).collect()
    }

    /// Whether the process still runs that a block has written down.
    fn runs(&self) -> bool {
        Identity::of(self.lines()[0].parse().unwrap()).is_some_and(|process| process.is_alive())
    }
}

impl Drop for Seen {
    fn drop(&mut self) {
        let _ = std::fs::remove_file(&self.0);
    }
}

#[tokio::test]
async fn a_home_is_empty_and_has_the_binary_and_goes_away() {
    let seen = Seen::new("home");
    let script = format!(
        "pwd > {0}; echo $HOME >> {0}; ls >> {0}; kube-informer a b; echo ${{KUBECONFIG-none}}",
        seen.0.display()
    );
    assert_eq!(outcome(block(&script, run(Place::Installed), &["called with a b", "none"])).await, None);
    let lines = seen.lines();
    let [folder, home] = &lines[..] else { panic!("{lines:?}") };
    assert_eq!(folder, home);
    assert!(!Path::new(home).exists());
    assert_ne!(Some(home.into()), std::env::var_os("HOME"));
}

#[tokio::test]
async fn a_server_is_there_for_its_block_and_ends_however_that_ends() {
    for place in [Place::Embedded, Place::Demo] {
        let seen = Seen::new(&format!("server-{place:?}"));
        let script = format!("kill -0 $(cat $KUBECONFIG); cat $KUBECONFIG > {}; echo up", seen.0.display());
        for (rest, action, failure) in [
            ("", run(place), None),
            ("sleep 600", until_output(place), None),
            ("exit 7", run(place), Some("exit status: 7")),
        ] {
            let why = outcome(block(&format!("{script}; {rest}"), action, &["up"])).await;
            assert_eq!(why.as_deref().and_then(|why| why.lines().next()), failure);
            assert!(!seen.runs(), "{place:?}: {rest:?}");
        }
    }
}

#[tokio::test]
async fn output_that_does_not_come_ends_the_server_and_the_block() {
    let seen = Seen::new("deadline");
    let script = format!("echo $$ > {0}; cat $KUBECONFIG >> {0}; echo up; sleep 600", seen.0.display());
    let scene = [block(&script, until_output(Place::Embedded), &["never"])];
    let why = played(Duration::from_secs(5), &scene).await.swap_remove(0).unwrap();
    assert!(why.contains("lacks the line `never` (killed after 5 s"), "{why}");
    // On a machine that is too busy for the first line, there is nobody to look for.
    for process in std::fs::read_to_string(&seen.0).unwrap_or_default().lines() {
        let id = process.parse().unwrap();
        eventually("it is gone", LONG, async || {
            Identity::of(id).filter(Identity::is_alive).is_none().then_some(())
        })
        .await;
    }
}

#[tokio::test]
async fn a_server_that_ends_by_itself_fails_its_block() {
    let why = outcome(block("kill $(cat $KUBECONFIG); while kill -0 $(cat $KUBECONFIG) 2>/dev/null && ! grep -q ') Z ' /proc/$(cat $KUBECONFIG)/stat; do sleep 0.01; done", run(Place::Embedded), &[])).await;
    assert!(why.as_deref().is_some_and(|why| why.contains("has ended before its block")), "{why:?}");
}

#[tokio::test]
async fn a_server_that_does_not_end_as_it_is_told_to_fails_its_block() {
    for place in [Place::Embedded, Place::Demo] {
        let ends = |how: &str| block(&format!("echo {how} > $KUBECONFIG.end"), run(place), &[]);
        let why = outcome(ends("exit 101")).await.unwrap();
        assert!(why.contains("was told to end, and ended with exit status: 101"), "{why}");
        let why = in_a_hurry(ends(":")).await.unwrap();
        assert!(why.contains("was told to end, and ended with signal: 9"), "{why}");
        assert_eq!(outcome(ends("exit 130")).await, None);
    }
}

#[tokio::test]
async fn a_failure_comes_with_what_the_server_said() {
    for (place, said) in [(Place::Embedded, "Ctrl-C ends it"), (Place::Demo, "what the informers see")] {
        let scene = [
            block("echo ready; while :; do sleep 0.05; done", until_output(place), &["ready"]),
            block("exit 7", run(Place::OtherTerminal), &[]),
        ];
        let whys = played(LONG, &scene).await;
        assert_eq!(whys[0], None);
        let why = whys[1].as_deref().unwrap();
        assert!(why.starts_with("exit status: 7\n") && why.contains(said), "{why}");
    }
}

#[tokio::test]
async fn nothing_of_the_users_environment_is_known() {
    const MARK: &str = "of-the-user";
    if std::env::var("KUBERC").is_ok_and(|value| value == MARK) {
        let here = format!("if env | grep {MARK}; then exit 1; fi");
        for place in [Place::Here, Place::ControlPlane, Place::Installed] {
            assert_eq!(outcome(block(&here, run(place), &[])).await, None, "{place:?}");
        }
        let there = |of: &str| {
            format!("{here}\ntest -s $KUBECONFIG.{of}\nif grep {MARK} $KUBECONFIG.{of}; then exit 1; fi")
        };
        for (place, of) in [(Place::Embedded, "server"), (Place::Demo, "server"), (Place::Demo, "wait")] {
            assert_eq!(outcome(block(&there(of), run(place), &[])).await, None, "{place:?}: {of}");
        }
        return;
    }
    // By itself, as somebody runs it who has all of it.
    let (_, module) = module_path!().split_once("::").unwrap();
    let mut test = Command::new(std::env::current_exe().unwrap());
    test.args([&format!("{module}::nothing_of_the_users_environment_is_known"), "--exact", "--nocapture"]);
    for name in
        ["KUBERC", "KUBECONFIG", "KUBECONFIG_E2E", "KUBERNETES_SERVICE_HOST", "KUBERNETES_SERVICE_PORT"]
            .into_iter()
            .chain(["KUBE_INFORMER_TOKEN", "ELASTI_OPERATOR_PORT", "HTTPS_PROXY", "http_proxy"])
    {
        test.env(name, MARK);
    }
    let output = test.output().await.unwrap();
    let said = String::from_utf8_lossy(&output.stdout) + String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success() && said.contains("1 passed"), "{said}");
}

#[tokio::test]
async fn what_is_installed_goes_to_the_home_that_goes_away() {
    let script = "test \"$CARGO_INSTALL_ROOT\" = \"$HOME/.local\"\n\
                  case \":$PATH:\" in *\":$CARGO_INSTALL_ROOT/bin:\"*) ;; *) exit 1 ;; esac";
    assert_eq!(outcome(block(script, run(Place::Here), &[])).await, None);
}

/// A script that leaves something running, and a record of it, as a control plane does.
fn plane(seen: &Seen, rest: &str) -> String {
    let name = r#"\"url\": \"\", \"controller_manager\": false"#;
    let server = r#"{\"name\": \"etcd\", \"pid\": $!, \"start_time\": $(cut -d ' ' -f 22 /proc/$!/stat)}"#;
    let seen = seen.0.display();
    format!(
        "mkdir -p target/control-plane
         setsid sleep 600 > /dev/null 2>&1 &
         until test $(cut -d ' ' -f 5 /proc/$!/stat) = $!; do sleep 0.01; done
         echo \"{{{name}, \\\"servers\\\": [{server}]}}\" > target/control-plane/control-plane.json
         echo $! > {seen}.new
         mv {seen}.new {seen}
         {rest}"
    )
}

#[tokio::test]
async fn a_control_plane_has_a_folder_of_its_own_and_ends_however_its_block_ends() {
    let seen = Seen::new("plane");
    for (rest, passes) in [("true", true), ("exit 1", false)] {
        let why = outcome(block(&plane(&seen, rest), run(Place::ControlPlane), &[])).await;
        assert_eq!(why.is_none(), passes, "{why:?}");
        assert!(!seen.runs());
    }
    assert!(!Path::new(env!("CARGO_MANIFEST_DIR")).join("target/control-plane").exists());
}

#[tokio::test]
async fn a_control_plane_ends_with_a_run_that_is_given_up() {
    let seen = Seen::new("given-up");
    let scene = [block(&plane(&seen, "sleep 600"), run(Place::ControlPlane), &[])];
    tokio::select! {
        whys = played(LONG, &scene) => panic!("{whys:?}"),
        () = eventually("it is up", LONG, async || seen.0.exists().then_some(())) => {}
    }
    assert!(!seen.runs());
}

#[tokio::test]
async fn a_block_in_another_terminal_runs_while_the_one_before_it_does() {
    let seen = Seen::new("terminals");
    let first = format!("echo $$ > {}; echo $HOME; echo ready; sleep 600", seen.0.display());
    let first = block(&first, until_output(Place::Installed), &["ready"]);
    let alive = format!("kill -0 $(cat {}); ls -d $HOME; kube-informer x", seen.0.display());
    let other = |script: &str, output| block(script, run(Place::OtherTerminal), output);
    let scene = [first, other(&alive, &["called with x"]), other("exit 5", &[]), other(&alive, &[])];
    let whys = played(LONG, &scene).await;
    assert_eq!(whys, [None, None, Some("exit status: 5".to_owned()), None]);
    assert!(!seen.runs());
}

#[tokio::test]
async fn what_goes_on_does_so_until_the_last_terminal_has_ended() {
    let (one, two) = (Seen::new("one"), Seen::new("two"));
    let goes_on =
        |seen: &Seen| format!("echo $$ > {}; echo ready; while :; do sleep 0.05; done", seen.0.display());
    let both = format!("kill -0 $(cat {}); kill -0 $(cat {})", one.0.display(), two.0.display());
    let scene = [
        block(&goes_on(&one), until_output(Place::Here), &["ready"]),
        block("true", run(Place::OtherTerminal), &[]),
        block(&goes_on(&two), until_output(Place::OtherTerminal), &["ready"]),
        block(&both, run(Place::OtherTerminal), &[]),
        block(&both, run(Place::OtherTerminal), &[]),
    ];
    assert_eq!(played(LONG, &scene).await, [const { None }; 5]);
    assert!(!one.runs() && !two.runs());
}

#[tokio::test]
async fn what_is_beside_a_block_that_has_ended_fails() {
    let first = block("echo ready; exit 3", until_output(Place::Here), &["ready", "more"]);
    let other = block("true", run(Place::OtherTerminal), &[]);
    let whys = played(LONG, &[first, other]).await;
    assert!(whys[0].as_deref().is_some_and(|why| why.contains("`more`")), "{whys:?}");
    assert!(whys[1].as_deref().is_some_and(|why| why.contains("has ended")), "{whys:?}");
}

#[tokio::test]
async fn ports_are_exchanged_for_free_ones_in_all_terminals() {
    let first = "echo 127.0.0.1:8080 | grep -v ':8080$'; sleep 600";
    let scene = [
        block(first, until_output(Place::Here), &["127.0.0.1:8080"]),
        block("echo at 127.0.0.1:8080", run(Place::OtherTerminal), &["at 127.0.0.1:8080"]),
    ];
    assert_eq!(played(LONG, &scene).await, [None, None]);
}
