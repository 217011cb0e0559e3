#!/bin/sh
# What the runner's own tests have in place of the binary. It says what a server says, and writes down who it is, and what it
# knows. It ends when it is told to, as a file beside its kubeconfig says, if there is one.
serve() {
    kubeconfig=$1
    trap end TERM
    env > "$kubeconfig.server"
    echo "$$" > "$kubeconfig"
    echo "$2"
    while :; do sleep 0.05; done
}
end() {
    if [ -e "$kubeconfig.end" ]; then . "$kubeconfig.end"; else exit 143; fi
}
case "$1 ${2:-}" in
"apiserver --simulate") serve "${4:?}" "Ctrl-C ends it" ;;
"demo --speed") serve "${TMPDIR:?}/kube-informer-demo-$$.yaml" "what the informers see: nothing" ;;
"wait deployments")
    env > "${KUBECONFIG:?}.wait"
    test -s "$KUBECONFIG"
    ;;
*) echo "called with $*" ;;
esac
