// Package batch pays what stands in a file: CSV or JSON Lines of any size, as batches of 100 payments over the HTTP door.
//
// A file is read twice. Check reads all of it, collects what is wrong, and keeps a hash of every chunk of 100 rows and nothing else of a row; while
// anything is wrong nothing is sent. Publish reads it again, and sends a chunk only if it is still what Check saw. The chunk's number makes its key,
// so that a run that died is run again with the same file and the same key: every chunk is sent again, and the server tells a repeat from a chunk
// that was changed. There is no state beside the file. Follow then watches the batches of the run until no payment moves by itself any more.
//
// No error repeats a value of the file: a card number may stand in any cell.
package batch
