//! What the README tells people to type is typed: its two terminals, in this order, with other files and ports.

use std::path::{Path, PathBuf};

use kube_informer_testbed::binaries::{self, Unavailable};
use kube_informer_testbed::eventually::eventually;
use kube_informer_testbed::process::Launch;
use kube_informer_testbed::require;

use crate::support::{Operator, SOON};

/// What the README calls the kubeconfig, and the port of the resolver's call.
const KUBECONFIG: &str = "target/elasti.kubeconfig";
const CALLED: &str = "127.0.0.1:8013";

fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..")
}

/// The shell blocks of the README, lines that go on as one.
fn terminals() -> Vec<String> {
    let readme = root().join("crates/kube-informer-elasti/README.md");
    let readme = std::fs::read_to_string(readme).unwrap();
    let blocks = readme.split("```sh\n").skip(1);
    blocks.map(|block| block.split("```").next().unwrap().replace("\\\n", " ")).collect()
}

/// The arguments of the program in each line that runs it.
fn commands(terminal: &str) -> Vec<Vec<&str>> {
    let runs = terminal.lines().filter_map(|line| line.strip_prefix("cargo run --release -- "));
    runs.map(|line| line.split_whitespace().filter(|word| *word != "&").collect()).collect()
}

async fn tools() -> Result<PathBuf, Unavailable> {
    let found = std::env::var_os("PATH")
        .is_some_and(|path| std::env::split_paths(&path).any(|folder| folder.join("curl").is_file()));
    match found {
        true => binaries::kubectl().await,
        false => Err(Unavailable::installable("curl", "apt install curl")),
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn what_the_readme_tells_people_to_type_works() {
    let kubectl = require!(tools().await);
    let folder = PathBuf::from(env!("CARGO_TARGET_TMPDIR")).join(format!("quick-{}", std::process::id()));
    std::fs::create_dir_all(&folder).unwrap();
    let kubeconfig = folder.join("kubeconfig");
    let kubeconfig = kubeconfig.to_str().unwrap();
    let all = terminals();
    let [first, second] = &all[..] else { panic!("the README has {} shell blocks", all.len()) };

    let [server, operator] = &commands(first)[..] else { panic!("{first}") };
    let launch = |name: &str, args: &[&str]| {
        let args = args.iter().map(|arg| arg.replace(KUBECONFIG, kubeconfig).replace(CALLED, "127.0.0.1:0"));
        let binary = env!("CARGO_BIN_EXE_kube-informer");
        Launch::new(name, binary, folder.join(format!("{name}.log"))).args(args).spawn().unwrap()
    };
    let _server = launch("apiserver", server);
    eventually("there is a kubeconfig", SOON, async || {
        std::fs::metadata(kubeconfig).ok().filter(|file| file.len() > 0)
    })
    .await;
    let operator = Operator::listening(launch("operator", operator)).await;

    // Its kubectl is the one of the tests.
    let bin = folder.join("bin");
    std::fs::create_dir_all(&bin).unwrap();
    std::os::unix::fs::symlink(&kubectl, bin.join("kubectl")).unwrap();
    let path = std::env::var_os("PATH").unwrap_or_default();
    let path = std::env::join_paths([bin].into_iter().chain(std::env::split_paths(&path))).unwrap();
    assert!(second.contains(KUBECONFIG) && second.contains(CALLED), "{second}");
    let address = operator.wake.url().strip_prefix("http://").unwrap();
    let script = second.replace(KUBECONFIG, kubeconfig).replace(CALLED, address);
    let mut shell = tokio::process::Command::new("sh");
    shell.args(["-euc", &script]).current_dir(root()).env("PATH", path).env("KUBERC", "off");
    shell.env("KUBECACHEDIR", folder.join("cache")).env("NO_PROXY", "127.0.0.1").kill_on_drop(true);
    let output = tokio::time::timeout(SOON * 2, shell.output()).await.unwrap().unwrap();
    let (said, errors) = (String::from_utf8_lossy(&output.stdout), String::from_utf8_lossy(&output.stderr));
    assert!(output.status.success(), "{said}{errors}\n{}", operator.process.logged());
    // Its last line is what people see in the end.
    let last = said.lines().last().unwrap_or_default();
    assert!(last.starts_with("web ") && last.contains("serve"), "{said}");
    assert_eq!(operator.stop().await.0.code(), Some(0));
    std::fs::remove_dir_all(&folder).unwrap();
}
