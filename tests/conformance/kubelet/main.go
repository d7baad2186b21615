// Command oracle says what a real kubelet does with a pod on an idle node.
//
// It reads JSON lines {"nodeClass": <NodeClass>, "pod": <Pod>} on stdin and writes one verdict line for each, in order.
// The kubelet's managers keep global state, leak goroutines and can panic or hang, so the work is done by child
// processes of the same program, each replaced after a number of cases or when it dies.
package main

import (
	"bufio"
	"flag"
	"fmt"
	"io"
	"os"
	"os/exec"
	"sync"
	"time"
)

const maxLine = 64 << 20

var (
	asWorker = flag.Bool("worker", false, "judge the cases on stdin in this process (started by the program itself)")
	workers  = flag.Int("workers", 2, "worker processes")
	repeat   = flag.Int("repeat", 5, "times that a case is judged to find out whether it depends on chance")
	timeout  = flag.Duration("timeout", 30*time.Second, "time for one case, after which its admission counts as hanging")
	lifetime = flag.Int("lifetime", 1500, "cases that one worker process judges before it is replaced")
)

func main() {
	flag.Parse()
	if *asWorker {
		work(os.Stdin, os.Stdout)
		return
	}
	supervise(os.Stdin, os.Stdout)
}

// work judges each line of in, until it ends.
func work(in io.Reader, out io.Writer) {
	silence()
	lines := scanner(in)
	for lines.Scan() {
		fmt.Fprintf(out, "%s\n", judgeLine(lines.Bytes(), *repeat))
	}
}

// supervise spreads the lines of in over worker processes and writes their answers in the order of the lines.
func supervise(in io.Reader, out io.Writer) {
	type job struct {
		line   []byte
		answer chan []byte
	}
	jobs := make(chan job)
	order := make(chan chan []byte, 4**workers)
	var group sync.WaitGroup
	for range *workers {
		group.Go(func() {
			w := &worker{}
			defer w.stop()
			for j := range jobs {
				j.answer <- w.ask(j.line)
			}
		})
	}
	go func() {
		lines := scanner(in)
		for lines.Scan() {
			if len(lines.Bytes()) == 0 {
				continue
			}
			j := job{append([]byte(nil), lines.Bytes()...), make(chan []byte, 1)}
			order <- j.answer
			jobs <- j
		}
		close(jobs)
		close(order)
	}()
	buffered := bufio.NewWriter(out)
	for answer := range order {
		buffered.Write(<-answer)
		buffered.WriteByte('\n')
		buffered.Flush()
	}
	group.Wait()
}

func scanner(in io.Reader) *bufio.Scanner {
	lines := bufio.NewScanner(in)
	lines.Buffer(make([]byte, 1<<20), maxLine)
	return lines
}

// worker is one child process; it is started when first asked.
type worker struct {
	process *exec.Cmd
	in      io.WriteCloser
	lines   chan []byte
	served  int
}

// ask returns the child's answer, or that of a kubelet that panics when the child dies or takes too long.
func (w *worker) ask(line []byte) []byte {
	if w.process == nil || w.served >= *lifetime {
		w.stop()
		if err := w.start(); err != nil {
			return failure("oracle: " + err.Error())
		}
	}
	w.served++
	if _, err := w.in.Write(append(line, '\n')); err != nil {
		w.stop()
		return hung("the kubelet died: "+err.Error(), false)
	}
	select {
	case answer, ok := <-w.lines:
		if ok {
			return answer
		}
		w.stop()
		return hung("the kubelet died during admission", false)
	case <-time.After(*timeout):
		w.stop()
		return hung(fmt.Sprintf("no answer within %s", *timeout), true)
	}
}

func (w *worker) start() error {
	self, err := os.Executable()
	if err != nil {
		return err
	}
	w.process = exec.Command(self, "-worker", fmt.Sprintf("-repeat=%d", *repeat))
	// A worker judges one case after the other and is soon replaced: collecting its garbage often, on all cores, took a third of the time.
	w.process.Env = append(os.Environ(), "GOMAXPROCS=1", "GOGC=400")
	w.process.Stderr = io.Discard
	if os.Getenv("ORACLE_DEBUG") != "" {
		w.process.Stderr = os.Stderr
	}
	if w.in, err = w.process.StdinPipe(); err != nil {
		return err
	}
	out, err := w.process.StdoutPipe()
	if err != nil {
		return err
	}
	w.lines, w.served = make(chan []byte, 1), 0
	go func(answers chan<- []byte) {
		lines := scanner(out)
		for lines.Scan() {
			answers <- append([]byte(nil), lines.Bytes()...)
		}
		close(answers)
	}(w.lines)
	return w.process.Start()
}

func (w *worker) stop() {
	if w.process == nil {
		return
	}
	w.in.Close()
	if w.process.Process != nil {
		w.process.Process.Kill()
		w.process.Wait()
	}
	w.process = nil
}
