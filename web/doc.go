// Package web is the dashboard. Its pages are rendered on the server and work without JavaScript, which only
// makes them faster.
package web
