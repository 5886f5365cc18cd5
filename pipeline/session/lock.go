package session

import (
	"context"
	"sync"
)

// lock is a mutex with a cancelable wait. Its zero value is unlocked.
type lock struct {
	once  sync.Once
	place chan struct{} // full while the lock is held
}

// acquire takes the lock, unless ctx ends before.
func (l *lock) acquire(ctx context.Context) error {
	select {
	case l.of() <- struct{}{}:
		return nil
	default:
	}
	select {
	case l.of() <- struct{}{}:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}

// Lock takes the lock.
func (l *lock) Lock() { l.of() <- struct{}{} }

// TryLock takes the lock if it is free.
func (l *lock) TryLock() bool {
	select {
	case l.of() <- struct{}{}:
		return true
	default:
		return false
	}
}

// Unlock gives the lock to the caller that has waited longest.
func (l *lock) Unlock() { <-l.of() }

func (l *lock) of() chan struct{} {
	l.once.Do(func() { l.place = make(chan struct{}, 1) })
	return l.place
}

// Interface guard.
var _ sync.Locker = (*lock)(nil)
