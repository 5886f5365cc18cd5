// Package tenantsdb stores workspaces, people, keys, pipeline configs and usage in Postgres. DB has one store
// for each noun. All share a core, which opens the transactions: for one workspace, one person, the owner of
// a key or link, or the worker. An exported method of a store is one transaction, an unexported function one
// query.
package tenantsdb
