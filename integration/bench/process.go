package main

import (
	"errors"
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"time"

	"curfew/integration/testenv"
)

// process is a server under test. It is killed when this process ends in any way.
type process struct {
	cmd  *exec.Cmd
	log  testenv.Log
	gone chan struct{}
}

// running are the processes to be ended when this one is interrupted. Without that,
// processes that they have started would live on, such as the node that RabbitMQ's script
// starts.
var running sync.Map // *process

// killAll kills all running processes.
func killAll() {
	running.Range(func(p, _ any) bool {
		p.(*process).stop()
		return true
	})
}

func startProcess(env []string, dir, name string, args ...string) (*process, error) {
	p := &process{cmd: exec.Command(name, args...), gone: make(chan struct{})}
	p.cmd.Env, p.cmd.Dir = env, dir
	p.cmd.Stdout, p.cmd.Stderr = &p.log, &p.log
	p.cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true, Pdeathsig: syscall.SIGKILL}
	if err := p.cmd.Start(); err != nil {
		return nil, err
	}
	running.Store(p, nil)
	go func() {
		defer close(p.gone)
		p.cmd.Wait() //nolint:errcheck // a server that has ended fails the next request
		running.Delete(p)
	}()
	return p, nil
}

// stop ends the process and everything it has started. It may be called again.
func (p *process) stop() {
	syscall.Kill(-p.cmd.Process.Pid, syscall.SIGKILL) //nolint:errcheck // it may have ended
	<-p.gone
}

// await polls ready every millisecond until it returns true.
func (p *process) await(what string, limit time.Duration, ready func() bool) error {
	late := time.After(limit)
	poll := time.NewTicker(time.Millisecond)
	defer poll.Stop()
	for !ready() {
		select {
		case <-poll.C:
		case <-p.gone:
			return fmt.Errorf("%s has ended:\n%s", what, p.log.String())
		case <-late:
			return fmt.Errorf("%s is not ready after %v:\n%s", what, limit, p.log.String())
		}
	}
	return nil
}

func listening(addr string) bool {
	c, err := net.DialTimeout("tcp", addr, time.Second)
	if err != nil {
		return false
	}
	c.Close()
	return true
}

// treeCPU returns the user and system time that a process and its descendants have used so
// far.
func treeCPU(pid int) time.Duration {
	children := map[int][]int{}
	used := map[int]time.Duration{}
	stats, _ := filepath.Glob("/proc/[0-9]*/stat")
	for _, path := range stats {
		id, parent, ticks, err := readStat(path)
		if err != nil {
			continue // it has ended
		}
		children[parent] = append(children[parent], id)
		used[id] = time.Duration(ticks) * time.Second / userHz
	}
	var sum func(int) time.Duration
	sum = func(id int) time.Duration {
		total := used[id]
		for _, child := range children[id] {
			total += sum(child)
		}
		return total
	}
	return sum(pid)
}

// userHz is the unit of times in /proc (USER_HZ, the same on every Linux that Go supports).
const userHz = 100

// readStat reads id, parent and used ticks, including those of ended children, from
// /proc/PID/stat.
func readStat(path string) (id, parent int, ticks int64, err error) {
	b, err := os.ReadFile(path)
	if err != nil {
		return 0, 0, 0, err
	}
	text := string(b)
	end := strings.LastIndexByte(text, ')') // the name may contain anything
	fields := strings.Fields(text[end+1:])
	if end < 0 || len(fields) < 15 {
		return 0, 0, 0, errors.New("not a stat file: " + path)
	}
	id, _ = strconv.Atoi(filepath.Base(filepath.Dir(path)))
	parent, _ = strconv.Atoi(fields[1])
	for _, at := range []int{11, 12, 13, 14} { // utime, stime, cutime, cstime
		n, _ := strconv.ParseInt(fields[at], 10, 64)
		ticks += n
	}
	return id, parent, ticks, nil
}

// preciseCPU returns the time that a process's threads have run, to the nanosecond.
func preciseCPU(pid int) (total time.Duration) {
	threads, _ := filepath.Glob(fmt.Sprintf("/proc/%d/task/*/schedstat", pid))
	for _, path := range threads {
		b, _ := os.ReadFile(path)
		ran, _, _ := strings.Cut(string(b), " ")
		ns, _ := strconv.ParseInt(ran, 10, 64)
		total += time.Duration(ns)
	}
	return total
}

// memory returns a process's resident bytes: its own, and those of mapped files, which are
// page cache.
func memory(pid int) (own, mapped int64) {
	b, _ := os.ReadFile(fmt.Sprintf("/proc/%d/status", pid))
	for line := range strings.Lines(string(b)) {
		name, rest, _ := strings.Cut(line, ":")
		kib, _ := strconv.ParseInt(strings.TrimSuffix(strings.TrimSpace(rest), " kB"), 10, 64)
		switch name {
		case "RssAnon":
			own = kib << 10
		case "RssFile", "RssShmem":
			mapped += kib << 10
		}
	}
	return own, mapped
}
