package batchdb

import "fmt"

// Wrapf returns an error that says what failed and why, or nil if err is nil. A store's method ends with it:
// `return key, batchdb.Wrapf(err, "API key %s", id)`. Callers must not use a value that is returned with an
// error.
func Wrapf(err error, format string, args ...any) error {
	if err == nil {
		return nil
	}
	return fmt.Errorf("%s: %w", fmt.Sprintf(format, args...), err)
}

// First returns the first row of a query's result, and the error missing if there are no rows. err is the
// query's own error.
func First[T any](found []T, err, missing error) (T, error) {
	if err == nil && len(found) == 0 {
		err = missing
	}
	if err != nil {
		var none T
		return none, err
	}
	return found[0], nil
}
