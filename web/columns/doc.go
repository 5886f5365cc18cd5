// Package columns renders a list's columns, each from one description.
package columns
