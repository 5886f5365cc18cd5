//go:build race

package api

const poison = true
