package credential

import (
	"errors"
	"os"
	"runtime"
	"time"

	"github.com/zalando/go-keyring"
)

// Keys is a store of keys, by server. Its functions are either all set, or all nil if the system has no
// such store.
type Keys struct {
	Get    func(server string) (string, error)
	Set    func(server, key string) error
	Delete func(server string) error
}

func (k Keys) present() bool { return k.Get != nil }

// system returns the system's key store, if it has one. On Linux that needs D-Bus, and the library would
// try to start a daemon if it found no address.
func system() Keys {
	if runtime.GOOS != "darwin" && runtime.GOOS != "windows" && os.Getenv("DBUS_SESSION_BUS_ADDRESS") == "" {
		return Keys{}
	}
	return Keys{
		Get:    func(server string) (string, error) { return keyring.Get(service, server) },
		Set:    func(server, key string) error { return keyring.Set(service, server, key) },
		Delete: func(server string) error { return keyring.Delete(service, server) },
	}.within(patience)
}

// patience is the timeout of the system's key store. It may ask the user for a password.
const patience = 20 * time.Second

const service = "palimpsest"

var errSlow = errors.New("the system's key store did not answer in time")

// within returns the same store with a timeout on its functions. After the timeout a call continues in its
// own goroutine until the program ends, which is soon for a command.
func (k Keys) within(wait time.Duration) Keys {
	return Keys{
		Get: func(server string) (string, error) {
			return ask(wait, func() (string, error) { return k.Get(server) })
		},
		Set: func(server, key string) error {
			_, err := ask(wait, func() (string, error) { return "", k.Set(server, key) })
			return err
		},
		Delete: func(server string) error {
			_, err := ask(wait, func() (string, error) { return "", k.Delete(server) })
			return err
		},
	}
}

type answer struct {
	key string
	err error
}

func ask(wait time.Duration, question func() (string, error)) (string, error) {
	answered := make(chan answer, 1)
	go func() {
		key, err := question()
		answered <- answer{key, err}
	}()
	select {
	case got := <-answered:
		return got.key, got.err
	case <-time.After(wait):
		return "", errSlow
	}
}
