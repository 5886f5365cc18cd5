package main

import (
	"context"
	"io"
	"net"
	"sync"
	"sync/atomic"
	"time"
)

// link is a proxy in front of a part. Its address stays the same when the part returns on another one, and
// it can add delay.
type link struct {
	listener net.Listener
	target   atomic.Value // string
	delay    atomic.Int64 // of sent data, in nanoseconds

	mu    sync.Mutex
	conns map[net.Conn]bool
	done  sync.WaitGroup
}

func newLink() (*link, error) {
	listener, err := new(net.ListenConfig).Listen(context.Background(), "tcp", "127.0.0.1:0")
	if err != nil {
		return nil, err
	}
	l := &link{listener: listener, conns: map[net.Conn]bool{}}
	l.target.Store("")
	l.done.Go(l.serve)
	return l, nil
}

func (l *link) address() string { return l.listener.Addr().String() }

func (l *link) serve() {
	for {
		near, err := l.listener.Accept()
		if err != nil {
			return
		}
		l.done.Go(func() { l.connect(near) })
	}
}

func (l *link) connect(near net.Conn) {
	defer l.forget(near)
	l.remember(near)
	target, _ := l.target.Load().(string)
	if target == "" {
		return
	}
	far, err := (&net.Dialer{Timeout: time.Second}).Dial("tcp", target)
	if err != nil {
		return
	}
	defer l.forget(far)
	l.remember(far)
	var ways sync.WaitGroup
	for _, way := range [][2]net.Conn{{near, far}, {far, near}} {
		ways.Go(func() {
			l.copy(way[1], way[0])
			_ = way[0].Close() // so that the other direction ends, too
			_ = way[1].Close()
		})
	}
	ways.Wait()
}

func (l *link) copy(to io.Writer, from io.Reader) {
	buffer := make([]byte, 64<<10)
	for {
		n, err := from.Read(buffer)
		if wait := l.delay.Load(); wait > 0 {
			time.Sleep(time.Duration(wait)) // simulates the network
		}
		if n > 0 {
			if _, err := to.Write(buffer[:n]); err != nil {
				return
			}
		}
		if err != nil {
			return
		}
	}
}

func (l *link) remember(conn net.Conn) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.conns[conn] = true
}

func (l *link) forget(conn net.Conn) {
	l.mu.Lock()
	defer l.mu.Unlock()
	delete(l.conns, conn)
	_ = conn.Close()
}

func (l *link) close() {
	_ = l.listener.Close()
	l.mu.Lock()
	for conn := range l.conns {
		_ = conn.Close()
	}
	l.mu.Unlock()
	l.done.Wait()
}
