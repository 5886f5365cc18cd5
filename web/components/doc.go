// Package components holds elements that several pages share: numbers, icons, badges, fields, dialogs.
package components
