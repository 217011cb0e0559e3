// Client-go's rate-limiting work queue as a contestant of `cargo xtask bench queue`.
//
// It is called with a case and a number of keys, and prints one line: bench/queue/src/lib.rs says what, and
// bench/queue/src/case.rs what the cases are.
package main

import (
	"encoding/json"
	"fmt"
	"os"
	"runtime"
	"strconv"
	"sync"
	"time"

	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/util/workqueue"
)

const workers = 4

// As controllers have them.
type key = types.NamespacedName

type queue = workqueue.TypedRateLimitingInterface[key]

// What the program prints.
type measured struct {
	Case   string  `json:"case"`
	Keys   int     `json:"keys"`
	WallNs float64 `json:"wall_ns"`
	CPUNs  float64 `json:"cpu_ns"`
	// Its keys included.
	PeakBytes uint64 `json:"peak_bytes"`
}

func main() {
	if err := run(os.Args[1:]); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

func run(arguments []string) error {
	if len(arguments) != 2 {
		return fmt.Errorf("usage: CASE KEYS")
	}
	play, known := cases[arguments[0]]
	if !known {
		return fmt.Errorf("no such case: %s", arguments[0])
	}
	count, err := strconv.Atoi(arguments[1])
	if err != nil {
		return err
	}
	keys := names(count)
	otherOrder := mixed(keys)
	watch := &stopwatch{}
	times := max(play.operations/max(count, 1), 1)
	for range times {
		limiter := workqueue.NewTypedItemExponentialFailureRateLimiter[key](5*time.Millisecond, 1000*time.Second)
		q := workqueue.NewTypedRateLimitingQueue(limiter)
		// What the preparations left behind is not the queue's.
		runtime.GC()
		if err := play.once(q, keys, otherOrder, watch); err != nil {
			return err
		}
		q.ShutDown()
	}
	most, err := peak()
	if err != nil {
		return err
	}
	operations := float64(times * count)
	text, err := json.Marshal(measured{
		Case:      arguments[0],
		Keys:      count,
		WallNs:    float64(watch.wall.Nanoseconds()) / operations,
		CPUNs:     float64(watch.cpu.Nanoseconds()) / operations,
		PeakBytes: most,
	})
	if err != nil {
		return err
	}
	_, err = fmt.Println(string(text))
	return err
}

// One case, and how many keys it is played with in all.
type play struct {
	operations int
	once       func(q queue, keys, otherOrder []key, watch *stopwatch) error
}

var cases = map[string]play{
	"fill-and-drain": {500_000, func(q queue, keys, _ []key, watch *stopwatch) error {
		return watch.time(func() {
			add(q, keys)
			drain(q, len(keys))
		})
	}},
	"fill-and-drain-by-four": {500_000, func(q queue, keys, _ []key, watch *stopwatch) error {
		return watch.time(func() {
			add(q, keys)
			q.ShutDown()
			var group sync.WaitGroup
			for range workers {
				group.Go(func() {
					for {
						item, shutdown := q.Get()
						if shutdown {
							return
						}
						q.Done(item)
					}
				})
			}
			group.Wait()
		})
	}},
	"add-pending": {500_000, func(q queue, keys, otherOrder []key, watch *stopwatch) error {
		add(q, keys)
		return watch.time(func() { add(q, otherOrder) })
	}},
	"steady": {500_000, func(q queue, keys, _ []key, watch *stopwatch) error {
		add(q, keys)
		return watch.time(func() {
			for range keys {
				item, _ := q.Get()
				q.Done(item)
				q.Add(item)
			}
		})
	}},
	"delayed": {50_000, func(q queue, keys, _ []key, watch *stopwatch) error {
		return watch.time(func() {
			for at, key := range keys {
				q.AddAfter(key, delay(at))
			}
			drain(q, len(keys))
		})
	}},
	"rate-limited": {50_000, func(q queue, keys, _ []key, watch *stopwatch) error {
		return watch.time(func() {
			fail(q, keys)
			for range keys {
				item, _ := q.Get()
				q.Forget(item)
				q.Done(item)
			}
		})
	}},
	"forget": {500_000, func(q queue, keys, otherOrder []key, watch *stopwatch) error {
		fail(q, keys)
		drain(q, len(keys))
		return watch.time(func() {
			for _, key := range otherOrder {
				q.Forget(key)
			}
		})
	}},
}

func add(q queue, keys []key) {
	for _, key := range keys {
		q.Add(key)
	}
}

func fail(q queue, keys []key) {
	for _, key := range keys {
		q.AddRateLimited(key)
	}
}

func drain(q queue, count int) {
	for range count {
		item, _ := q.Get()
		q.Done(item)
	}
}
