// Package manage is the product's JSON API: the actions of the dashboard, for scripts. Each noun has a file;
// openapi.yaml describes every route.
package manage
