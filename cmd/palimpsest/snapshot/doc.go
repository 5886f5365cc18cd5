// Package snapshot makes backups of a whole installation and restores them into an empty place.
//
// A backup is a directory:
//
//   - database.dump is what pg_dump wrote, in its custom format, of one moment.
//   - objects holds the bucket's objects below their names, and objects.sha256 lists them as
//     sha256sum does. They are read after the database: the bucket's objects are never
//     changed, so everything that the database knew of is there by then, unless it has
//     been deleted since.
//   - secret.key is the master key, if that was asked for.
//   - manifest.json says what the rest is, with sizes and SHA-256 sums. It is written last.
//
// The directory has another name until all of it is on disk.
package snapshot
