// Package web is the dashboard: pages rendered on the server that work without
// JavaScript and are quick with it.
package web
