// Package snapshot makes backups of a whole installation and restores them into an empty place.
//
// A backup is a directory:
//
//   - database.dump is the output of pg_dump, in its custom format, of one moment.
//   - objects holds the bucket's objects below their names, and objects.sha256 lists them as
//     sha256sum does. They are read after the database. Since the bucket's objects never
//     change, every object that the database knew of is still there, unless it has been
//     deleted since.
//   - secret.key is the master key, if the operator asked for it.
//   - manifest.json describes the rest, with sizes and SHA-256 sums.
//   - manifest.mac is the HMAC-SHA256 of manifest.json, by a key derived from the master key.
//     Without the master key no one can change a backup unnoticed, since the manifest has
//     the sums of the rest. It is written last.
//
// A restore reads only these files, and beside pg_restore runs only the program's own statements: no name in
// a backup becomes a part of a statement or a path.
//
// The directory has another name until all of it is on disk.
package snapshot
