// Package wiretest holds what every wire format must do, as tests that each
// format runs on samples of its own.
package wiretest
