// Package manage is the product's JSON API: what people do on the dashboard, for
// scripts. Each noun has a file; openapi.yaml describes every route.
package manage
