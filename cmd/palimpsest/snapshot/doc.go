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
//   - manifest.json says what the rest is, with sizes and SHA-256 sums.
//   - manifest.mac is the HMAC-SHA256 of manifest.json, by a key derived from the master key.
//     Without the master key nothing of a backup can be changed, since the manifest has the
//     sums of the rest. It is written last.
//
// A restore reads these files alone, and takes from the program what it runs beside pg_restore:
// no name in a backup becomes a part of a statement or a path.
//
// The directory has another name until all of it is on disk.
package snapshot
