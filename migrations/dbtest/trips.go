package dbtest

import (
	"context"
	"errors"
	"net"
	"sync"
	"sync/atomic"
	"testing"
)

// Trips counts round trips to a server.
type Trips struct {
	count    atomic.Int64
	answered atomic.Bool // the last data came from the server
}

// Count returns the round trips since its last call.
func (t *Trips) Count() int { return int(t.count.Swap(0)) }

// CountTrips returns the address of a database through a relay that counts round trips. For the trips of one
// connection, use no other at the same time. The relay ends with the test.
func CountTrips(t testing.TB, address string) (through string, trips *Trips) {
	t.Helper()
	to := parsed(t, address).Host
	listener, err := new(net.ListenConfig).Listen(t.Context(), "tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	trips = new(Trips)
	var relays sync.WaitGroup
	relays.Go(func() {
		for {
			client, err := listener.Accept()
			if err != nil {
				return // the test has ended
			}
			relays.Go(func() {
				if err := trips.relay(client, to); err != nil {
					t.Errorf("reach the database: %v", err)
				}
			})
		}
	})
	t.Cleanup(func() {
		_ = listener.Close() // ends Accept
		relays.Wait()
	})
	from := parsed(t, address)
	from.Host = listener.Addr().String()
	return from.String(), trips
}

// relay copies data between a client and a server until either ends.
func (t *Trips) relay(client net.Conn, address string) error {
	server, err := new(net.Dialer).DialContext(context.Background(), "tcp", address)
	if err != nil {
		return errors.Join(err, client.Close())
	}
	var both sync.WaitGroup
	pass := func(to, from net.Conn, note func()) {
		defer func() { _, _ = to.Close(), from.Close() }() // ends the other direction too
		part := make([]byte, 64<<10)
		for {
			count, err := from.Read(part)
			if count > 0 {
				note()
				if _, err := to.Write(part[:count]); err != nil {
					return
				}
			}
			if err != nil {
				return
			}
		}
	}
	both.Go(func() {
		pass(server, client, func() {
			if t.answered.Swap(false) {
				t.count.Add(1)
			}
		})
	})
	both.Go(func() { pass(client, server, func() { t.answered.Store(true) }) })
	both.Wait()
	return nil
}
