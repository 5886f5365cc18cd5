// Package demo fills an installation with the work of an invented team, so that someone can look around in
// it. All data goes through the product: its people sign up, invite each other and change settings through
// the JSON API, and every exchange goes through the proxy to a provider double, while a clock runs through
// the months in between. The same seed gives the same people, sessions and messages.
package demo
