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

// First returns the first of the rows that a query found, and missing as the error if it found none.
// err is the query's own.
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
