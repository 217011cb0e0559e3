package main

import (
	"fmt"
	"os"
	"strconv"
	"strings"
	"syscall"
	"time"
)

// What the process has used since its start.
type usage struct {
	WallNs   int64  `json:"wall_ns"`
	CPUNs    int64  `json:"cpu_ns"`
	RssBytes uint64 `json:"rss_bytes"`
	// The most that it ever was.
	PeakBytes uint64 `json:"peak_bytes"`
	Objects   int    `json:"objects"`
	Updates   uint64 `json:"updates"`
	Fresh     uint64 `json:"fresh"`
}

func usageSince(start time.Time) (*usage, error) {
	wall := time.Since(start)
	cpu, err := cpuNs()
	if err != nil {
		return nil, err
	}
	rss, err := memory("VmRSS")
	if err != nil {
		return nil, err
	}
	peak, err := memory("VmHWM")
	if err != nil {
		return nil, err
	}
	return &usage{WallNs: wall.Nanoseconds(), CPUNs: cpu, RssBytes: rss, PeakBytes: peak}, nil
}

// The processor's time of all threads of this process, the kernel's work for them included.
func cpuNs() (int64, error) {
	var spent syscall.Rusage
	err := syscall.Getrusage(syscall.RUSAGE_SELF, &spent)
	return spent.Utime.Nano() + spent.Stime.Nano(), err
}

// A line of /proc/self/status, in bytes.
func memory(name string) (uint64, error) {
	status, err := os.ReadFile("/proc/self/status")
	if err != nil {
		return 0, err
	}
	for line := range strings.Lines(string(status)) {
		if rest, found := strings.CutPrefix(line, name+":"); found {
			kilobytes, err := strconv.ParseUint(strings.TrimSuffix(strings.TrimSpace(rest), " kB"), 10, 64)
			return kilobytes * 1024, err
		}
	}
	return 0, fmt.Errorf("/proc/self/status has no %s", name)
}
