// Client-go's rate-limiting work queue as a contestant of `cargo xtask bench queue`.
//
// It is called with a case, a number of keys, and how often if that matters, and prints one line: bench/queue/src/lib.rs says what, and
// bench/queue/src/case.rs what the cases are.
package main

import (
	"encoding/json"
	"fmt"
	"os"
	"runtime"
	"strconv"
	"sync"
	"sync/atomic"
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
	// What became of the keys of all times: those that workers got, those that were there to be got at the end, and
	// the failures that were remembered then.
	Got     int `json:"got"`
	Left    int `json:"left"`
	Failing int `json:"failing"`
}

func main() {
	if err := run(os.Args[1:]); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

func run(arguments []string) error {
	if len(arguments) < 2 || len(arguments) > 3 {
		return fmt.Errorf("usage: CASE KEYS [TIMES]")
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
	if len(arguments) == 3 {
		if times, err = strconv.Atoi(arguments[2]); err != nil {
			return err
		}
	}
	got, left, failing := 0, 0, 0
	for range times {
		limiter := workqueue.NewTypedItemExponentialFailureRateLimiter[key](5*time.Millisecond, 1000*time.Second)
		q := workqueue.NewTypedRateLimitingQueue(limiter)
		// What the preparations left behind is not the queue's.
		runtime.GC()
		gotten, err := play.once(q, keys, otherOrder, watch)
		if err != nil {
			return err
		}
		got += gotten
		left += q.Len()
		for _, key := range keys {
			failing += q.NumRequeues(key)
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
		Got:       got,
		Left:      left,
		Failing:   failing,
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
	// How many keys workers got.
	once func(q queue, keys, otherOrder []key, watch *stopwatch) (int, error)
}

var cases = map[string]play{
	"fill-and-drain": {500_000, func(q queue, keys, _ []key, watch *stopwatch) (got int, err error) {
		err = watch.time(func() {
			add(q, keys)
			got = drain(q, len(keys))
		})
		return got, err
	}},
	"fill-and-drain-by-four": {500_000, func(q queue, keys, _ []key, watch *stopwatch) (int, error) {
		var got atomic.Int64
		err := watch.time(func() {
			add(q, keys)
			q.ShutDown()
			var group sync.WaitGroup
			for range workers {
				group.Go(func() {
					mine := int64(0)
					for {
						item, shutdown := q.Get()
						if shutdown {
							got.Add(mine)
							return
						}
						q.Done(item)
						mine++
					}
				})
			}
			group.Wait()
		})
		return int(got.Load()), err
	}},
	"add-pending": {500_000, func(q queue, keys, otherOrder []key, watch *stopwatch) (int, error) {
		add(q, keys)
		return 0, watch.time(func() { add(q, otherOrder) })
	}},
	"steady": {500_000, func(q queue, keys, _ []key, watch *stopwatch) (got int, err error) {
		add(q, keys)
		err = watch.time(func() {
			for range keys {
				item, shutdown := q.Get()
				if shutdown {
					break
				}
				q.Done(item)
				q.Add(item)
				got++
			}
		})
		return got, err
	}},
	"delayed": {50_000, func(q queue, keys, _ []key, watch *stopwatch) (got int, err error) {
		err = watch.time(func() {
			for at, key := range keys {
				q.AddAfter(key, delay(at))
			}
			got = drain(q, len(keys))
		})
		return got, err
	}},
	"rate-limited": {50_000, func(q queue, keys, _ []key, watch *stopwatch) (got int, err error) {
		err = watch.time(func() {
			fail(q, keys)
			for range keys {
				item, shutdown := q.Get()
				if shutdown {
					break
				}
				q.Forget(item)
				q.Done(item)
				got++
			}
		})
		return got, err
	}},
	"forget": {500_000, func(q queue, keys, otherOrder []key, watch *stopwatch) (int, error) {
		fail(q, keys)
		got := drain(q, len(keys))
		return got, watch.time(func() {
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

func drain(q queue, count int) (got int) {
	for range count {
		item, shutdown := q.Get()
		if shutdown {
			break
		}
		q.Done(item)
		got++
	}
	return got
}
