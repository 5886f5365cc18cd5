// Package faulttest makes doubles fail at one of their calls, so that a test can try each call, simulates
// faulty servers, and limits waits that a fault would make endless.
package faulttest

import (
	"context"
	"errors"
	"fmt"
	"net"
	"sync"
	"testing"
	"time"
)

// patience is how long Until waits, even on a busy machine.
const patience = time.Minute

// Until returns once something holds, and fails the test if it takes longer than a minute.
func Until(t testing.TB, what string, holds func() bool) {
	t.Helper()
	for began := time.Now(); !holds(); <-time.After(time.Millisecond) {
		if time.Since(began) > patience {
			t.Fatalf("%s: not within %s", what, patience)
		}
	}
}

// Serve returns the address of a server on the loopback interface that runs speak for each connection and
// then closes it. At the end of the test it stops and closes the remaining connections.
func Serve(t testing.TB, speak func(net.Conn)) (address string) {
	t.Helper()
	listener, err := new(net.ListenConfig).Listen(t.Context(), "tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	var running sync.WaitGroup
	t.Cleanup(func() {
		_ = listener.Close()
		running.Wait()
	})
	running.Go(func() {
		for {
			connection, err := listener.Accept()
			if err != nil {
				return // the test has ended
			}
			context.AfterFunc(t.Context(), func() { _ = connection.Close() })
			running.Go(func() {
				defer func() { _ = connection.Close() }()
				speak(connection)
			})
		}
	})
	return listener.Addr().String()
}

// Err is the error of a call that fails as planned.
var Err = errors.New("failed as planned")

// way is how a call fails.
type way string

const (
	refused    way = "is refused"          // without effect; the next call succeeds
	unanswered way = "gets no answer"      // takes effect but returns an error; the next call succeeds
	down       way = "begins a long fault" // without effect, as are all further calls until Repair
)

// Calls counts the calls of doubles and fails one of them. For a nil Calls and the zero value, all calls
// succeed. It is safe for concurrent use.
type Calls struct {
	mu       sync.Mutex
	made     int
	at       int // number of the call that fails, from 1; 0 if all succeed
	way      way
	err      error
	repaired bool
}

// FailAt returns Calls in which the call with a number, counted from 1, fails with an error, and so do all
// later ones until Repair.
func FailAt(call int, err error) *Calls { return &Calls{at: call, way: down, err: err} }

// Do makes a call, unless it is the one that fails.
func (c *Calls) Do(call func() error) error {
	if c == nil {
		return call()
	}
	fails := c.next()
	if fails != nil && c.way != unanswered {
		return fails
	}
	return errors.Join(call(), fails)
}

// next counts a call and returns the error that it fails with; nil if it succeeds.
func (c *Calls) next() error {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.repaired {
		return nil
	}
	c.made++
	if c.at > 0 && (c.made == c.at || c.made > c.at && c.way == down) {
		return c.err
	}
	return nil
}

// Fault returns the error of the call that fails; nil if all succeed.
func (c *Calls) Fault() error { return c.err }

// Repair makes all later calls succeed, without counting them.
func (c *Calls) Repair() {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.repaired = true
}

// Walk runs a test repeatedly: first without a fault, and then with each of that run's calls before Repair
// failing with an error, in every way.
func Walk(t *testing.T, err error, run func(t *testing.T, calls *Calls)) {
	t.Helper()
	var sound Calls
	if !t.Run("no call fails", func(t *testing.T) { run(t, &sound) }) {
		return
	}
	if sound.made == 0 {
		t.Fatal("no call is made")
	}
	for at := 1; at <= sound.made; at++ {
		for _, way := range []way{refused, unanswered, down} {
			t.Run(fmt.Sprintf("call %d of %d %s", at, sound.made, way), func(t *testing.T) {
				run(t, &Calls{at: at, way: way, err: err})
			})
		}
	}
}
