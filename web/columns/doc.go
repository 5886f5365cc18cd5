// Package columns draws the columns of a list from one description each.
package columns
