// Package wiretest holds the rules for all wire formats, as tests that each format runs on its own samples.
package wiretest
