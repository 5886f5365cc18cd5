// Package components holds the looks that several pages share: numbers, icons,
// badges, fields, dialogs.
package components
