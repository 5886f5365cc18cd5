// Package render shows archived text. A conversation's text was written by models, tools, web pages and their
// authors, so it is hostile. The HTML of this package loads nothing, runs nothing, styles nothing and shows
// the target of every link. Each text passes three gates: our own renderers, which escape raw HTML and turn
// pictures into words; an allow-list; and a gate that makes visible the marks that would hide or reorder
// text. Text that is too large, too deep or too slow to render is shown as plain text.
package render
