// Package pipelinetest makes exchanges of real request bodies for the tests of
// modules, lets conversations grow request by request, and holds the suite that
// every module must pass.
package pipelinetest
