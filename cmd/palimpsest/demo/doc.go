// Package demo fills an installation with the work of an invented team, so that someone can look around in
// it. All data goes through the product: its people sign up, invite each other and change settings through
// the JSON API, and every session goes through the proxy to a provider double, while a clock runs through the
// months in between. Most requests are figures only, which the recorder writes. The same seed gives the same
// people, sessions and messages.
package demo
