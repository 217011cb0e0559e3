package main

import (
	"fmt"
	"os"
	"strconv"
	"strings"
	"syscall"
	"time"
)

// Namespace and name of so many objects, in the order of a list.
func names(count int) []key {
	keys := make([]key, count)
	for at := range keys {
		keys[at] = key{Namespace: fmt.Sprintf("namespace-%d", at/1000), Name: fmt.Sprintf("web-6d4b75cb6d-%07d", at)}
	}
	return keys
}

// The same in another order, which is always the same one.
func mixed(keys []key) []key {
	mixed := append([]key(nil), keys...)
	state := uint64(1)
	for at := len(mixed) - 1; at > 0; at-- {
		state = state*6_364_136_223_846_793_005 + 1_442_695_040_888_963_407
		other := int(state>>33) % (at + 1)
		mixed[at], mixed[other] = mixed[other], mixed[at]
	}
	return mixed
}

// How long a key is delayed, by its place: up to 10 ms, in no order.
func delay(at int) time.Duration {
	return time.Duration(at*7919%10_000) * time.Microsecond
}

// Adds up what is measured: time as the wall and as the processor see it.
type stopwatch struct {
	wall, cpu time.Duration
}

func (watch *stopwatch) time(work func()) error {
	before, err := cpu()
	if err != nil {
		return err
	}
	start := time.Now()
	work()
	watch.wall += time.Since(start)
	after, err := cpu()
	watch.cpu += after - before
	return err
}

// What all threads of the process took, the kernel's work for them included.
func cpu() (time.Duration, error) {
	var spent syscall.Rusage
	err := syscall.Getrusage(syscall.RUSAGE_SELF, &spent)
	return time.Duration(spent.Utime.Nano() + spent.Stime.Nano()), err
}

// The most bytes that this process ever had.
func peak() (uint64, error) {
	status, err := os.ReadFile("/proc/self/status")
	if err != nil {
		return 0, err
	}
	for line := range strings.Lines(string(status)) {
		if rest, found := strings.CutPrefix(line, "VmHWM:"); found {
			kilobytes, err := strconv.ParseUint(strings.TrimSuffix(strings.TrimSpace(rest), " kB"), 10, 64)
			return kilobytes * 1024, err
		}
	}
	return 0, fmt.Errorf("/proc/self/status has no VmHWM")
}
