#!/bin/sh
# What the runner's own tests have in place of the binary. It says what a server says, and writes down who it is.
case "$1 ${2:-}" in
"apiserver --simulate")
    echo "$$" > "${4:?}"
    echo "Ctrl-C ends it"
    exec sleep 600
    ;;
"demo --speed")
    echo "$$" > "${TMPDIR:?}/kube-informer-demo-$$.yaml"
    echo "what the informers see: nothing"
    exec sleep 600
    ;;
"wait deployments") test -s "${KUBECONFIG:?}" ;;
*) echo "called with $*" ;;
esac
