// Package render shows archived text. What a conversation holds was written by models,
// tools, web pages and the people who wrote those: it is hostile. It leaves this package as
// HTML that loads nothing, runs nothing, styles nothing and links nowhere without
// saying where. Each text passes three gates: our own renderers, which escape raw
// HTML and turn pictures into words; an allow-list; and marks that would hide or
// reorder text are made visible. What is too large, too deep or takes too long is
// shown as plain text.
package render
