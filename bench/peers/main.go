// Client-go's informers as contestants of `cargo xtask bench`.
//
// One process is one contestant: `typed` is a SharedInformerFactory over pods in protobuf, `dynamic` a dynamic informer
// over custom resources in JSON, both with the streaming list and a transform that drops the managed fields; `idle`
// connects and does nothing. The cluster is the one of $KUBECONFIG.
//
// It talks as every contestant does: bench/sync/src/protocol.rs says how.
package main

import (
	"bufio"
	"encoding/json"
	"fmt"
	"net/http"
	"os"
	"runtime/debug"
	"strconv"
	"strings"
	"time"

	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"
)

// A contestant whose cache is in sync, and whose handler has seen every object of it.
type contestant struct {
	// How many objects it had then.
	objects int
	// How many it has now.
	count func() int
	// What its handler has seen since.
	seen *seen
	// How it is read; nil where reads are not measured. Made when it is wanted: until then, nothing is kept for it.
	reads func() *reads
}

func main() {
	start := time.Now()
	if err := run(start, os.Args[1:]); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

func run(start time.Time, arguments []string) error {
	if len(arguments) != 1 {
		return fmt.Errorf("usage: typed | dynamic | idle")
	}
	config, err := clientcmd.BuildConfigFromFlags("", os.Getenv("KUBECONFIG"))
	if err != nil {
		return err
	}
	config = uncompressed(config)
	begin := map[string]func(*rest.Config) (*contestant, error){"typed": typed, "dynamic": dynamicResources, "idle": idle}
	synced, known := begin[arguments[0]]
	if !known {
		return fmt.Errorf("no such contestant: %s", arguments[0])
	}
	contestant, err := synced(config)
	if err != nil {
		return err
	}
	if err := report(start, contestant); err != nil {
		return err
	}
	lines := bufio.NewScanner(os.Stdin)
	for lines.Scan() {
		if err := obey(start, contestant, strings.Fields(lines.Text())); err != nil {
			return err
		}
	}
	return lines.Err()
}

// Without compression, of lists and of watches. Otherwise client-go asks for gzip, which the server gives streaming lists, too:
// over loopback that costs both of them more than it saves.
func uncompressed(config *rest.Config) *rest.Config {
	config = rest.CopyConfig(config)
	config.DisableCompression = true
	// Without TLS it would take Go's own transport, which asks for gzip whatever is said here. This is the proxy that it
	// takes by itself.
	config.Proxy = http.ProxyFromEnvironment
	return config
}

func obey(start time.Time, contestant *contestant, command []string) error {
	word, argument := "", uint64(0)
	if len(command) > 0 {
		word = command[0]
	}
	if len(command) > 1 {
		number, err := strconv.ParseUint(command[1], 10, 64)
		if err != nil {
			return err
		}
		argument = number
	}
	switch word {
	case "usage":
	case "await":
		contestant.seen.updates.await(argument)
	case "whole":
		contestant.seen.whole.Store(true)
	case "free":
		debug.FreeOSMemory()
	case "since":
		contestant.seen.stamps.wantSince(argument)
	case "fresh":
		contestant.seen.stamps.fresh.await(argument)
	case "ages":
		return printed(map[string]any{"ages_ns": contestant.seen.stamps.takeAges()})
	case "objects":
		return printed(map[string]any{"objects": contestant.count()})
	case "reads", "readers":
		if contestant.reads == nil {
			return fmt.Errorf("this contestant's reads are not measured")
		}
		var times any
		var err error
		if word == "readers" {
			times, err = contestant.reads().measureWith(int(argument))
		} else {
			times, err = contestant.reads().measure()
		}
		if err != nil {
			return err
		}
		return printed(times)
	default:
		return fmt.Errorf("no such command: %q", command)
	}
	return report(start, contestant)
}

// Prints what the process has used up to now.
func report(start time.Time, contestant *contestant) error {
	used, err := usageSince(start)
	if err != nil {
		return err
	}
	used.Objects = contestant.objects
	used.Updates = contestant.seen.updates.at.Load()
	used.Fresh = contestant.seen.stamps.fresh.at.Load()
	return printed(used)
}

func printed(line any) error {
	text, err := json.Marshal(line)
	if err != nil {
		return err
	}
	_, err = fmt.Println(string(text))
	return err
}

// Connects and does nothing: what a process takes that has no informer.
func idle(config *rest.Config) (*contestant, error) {
	client, err := kubernetes.NewForConfig(inProtobuf(config))
	if err != nil {
		return nil, err
	}
	if _, err := client.Discovery().ServerVersion(); err != nil {
		return nil, err
	}
	return &contestant{count: func() int { return 0 }, seen: newSeen()}, nil
}
