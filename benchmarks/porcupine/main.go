// Command porcupine runs the checker Porcupine (v1.3.1, through its Go module) on histories of ours
// and on the corpus that Porcupine ships, so that both checkers answer about the same files.
//
//	porcupine -model mutex -timeout 60s a.jsonl b.jsonl
//	porcupine -model etcd -repeat 5 etcd_000.log
//
// It prints one JSON line a file: the verdict, the best time of the check alone (reading the file is
// left out on both sides) and the greatest memory the process used so far.  It says "start" before
// each check, so that a caller who has to kill it knows how far it got.
//
// Traps: an operation of unknown outcome has to be linearized somewhere in Porcupine, so each step
// function here makes it a no-op where it would be illegal; it returns at the end of the history.
// Events are taken in the order of the lines.
package main

import (
	"encoding/json"
	"flag"
	"fmt"
	"os"
	"syscall"
	"time"

	"github.com/anishathalye/porcupine"
)

type answer struct {
	File    string  `json:"file"`
	Verdict string  `json:"verdict"`
	Seconds float64 `json:"seconds"`
	Events  int     `json:"events"`
	PeakMB  float64 `json:"peak_mb"`
}

func main() {
	name := flag.String("model", "mutex", "mutex | semaphore | cas | etcd | kv")
	permits := flag.Int("k", 1, "permits of the semaphore")
	timeout := flag.Duration("timeout", 60*time.Second, "limit of one check")
	repeat := flag.Int("repeat", 1, "checks per file; the best time counts")
	flag.Parse()
	out := json.NewEncoder(os.Stdout)
	for _, path := range flag.Args() {
		events, err := read(path, *name)
		if err != nil {
			fmt.Fprintf(os.Stderr, "porcupine: %s: %v\n", path, err)
			os.Exit(2)
		}
		best := answer{File: path, Events: len(events)}
		fmt.Fprintf(os.Stderr, "start %s\n", path)
		for i := 0; i < *repeat; i++ {
			begin := time.Now()
			verdict := porcupine.CheckEventsTimeout(modelOf(*name, *permits), events, *timeout)
			seconds := time.Since(begin).Seconds()
			if i == 0 || seconds < best.Seconds {
				best.Seconds = seconds
			}
			best.Verdict = string(verdict)
		}
		best.PeakMB = peakMB()
		if err := out.Encode(best); err != nil {
			fmt.Fprintln(os.Stderr, "porcupine:", err)
			os.Exit(2)
		}
	}
}

func peakMB() float64 {
	var usage syscall.Rusage
	if err := syscall.Getrusage(syscall.RUSAGE_SELF, &usage); err != nil {
		return 0
	}
	return float64(usage.Maxrss) / 1024 // Linux gives kilobytes
}
