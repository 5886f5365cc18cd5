package batchdb

import "fmt"

// Wrapf returns an error that says what failed and why, or nil if err is nil. A store's method ends
// with it: `return key, batchdb.Wrapf(err, "API key %s", id)`. What is returned beside an error is
// not to be used.
func Wrapf(err error, format string, args ...any) error {
	if err == nil {
		return nil
	}
	return fmt.Errorf("%s: %w", fmt.Sprintf(format, args...), err)
}
