package stripesim

import (
	"bufio"
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"hash/crc32"
	"io"
	"log/slog"
	"os"
)

// journal is the ledger file: one record a line, only ever appended to. A line
// is eight hex digits of CRC-32C, a space, JSON and a newline.
type journal struct {
	file   *os.File
	size   int64 // of whole lines
	sync   bool
	buf    bytes.Buffer
	broken error // the file's end is unknown: nothing more is written
}

const (
	journalVersion = 1
	crcPrefix      = 9
)

var castagnoli = crc32.MakeTable(crc32.Castagnoli)

// record is one line. Which parts are there says what happened.
type record struct {
	Header  *header      `json:"header,omitempty"`  // first line only
	Offset  *int64       `json:"offset,omitempty"`  // the clock's, nanoseconds
	Account string       `json:"account,omitempty"` // of all that follows
	Request *Request     `json:"request,omitempty"`
	Intent  *intent      `json:"intent,omitempty"` // new state, or the one an error shows
	Changed bool         `json:"changed,omitempty"`
	Charge  *chargeNote  `json:"charge,omitempty"`
	Refund  *refund      `json:"refund,omitempty"` // new state
	Saved   *savedMethod `json:"saved,omitempty"`  // new state
	Stored  *storedNote  `json:"stored,omitempty"`
	At      int64        `json:"at,omitempty"` // unix nanoseconds of the execution
}

type header struct {
	Version int    `json:"version"`
	Salt    uint64 `json:"salt"` // of ids
}

// storedNote is the answer under an idempotency key; its object is the record's.
type storedNote struct {
	Print  []byte    `json:"print"`
	Status int       `json:"status"`
	Error  *apiError `json:"error,omitempty"`
	Shows  bool      `json:"shows,omitempty"` // the error shows the PaymentIntent
}

// openJournal opens or creates the file, hands every record to load, and
// leaves it ready for appending. A torn last line is cut off.
func openJournal(path string, salt uint64, sync bool, log *slog.Logger, load func(*record) error) (*journal, error) {
	f, err := os.OpenFile(path, os.O_RDWR|os.O_CREATE, 0o600)
	if err != nil {
		return nil, fmt.Errorf("stripesim: ledger file: %w", err)
	}
	j := &journal{file: f, sync: sync}
	if err := j.open(salt, log, load); err != nil {
		return nil, errors.Join(fmt.Errorf("stripesim: ledger file %s: %w", path, err), f.Close())
	}
	return j, nil
}

func (j *journal) open(salt uint64, log *slog.Logger, load func(*record) error) error {
	if err := lockFile(j.file); err != nil {
		return fmt.Errorf("another process has it open: %w", err)
	}
	torn, err := j.replay(load)
	if err != nil {
		return err
	}
	if torn > 0 {
		log.Warn("ledger file ends in a torn line, which is cut off", "bytes", torn)
		if err := j.file.Truncate(j.size); err != nil {
			return fmt.Errorf("cutting off a torn line: %w", err)
		}
	}
	if _, err := j.file.Seek(j.size, io.SeekStart); err != nil {
		return err
	}
	if j.size > 0 {
		return nil
	}
	first := &record{Header: &header{Version: journalVersion, Salt: salt}}
	if err := load(first); err != nil {
		return err
	}
	return j.append(first)
}

// replay reads all whole lines and returns the length of a torn last one.
func (j *journal) replay(load func(*record) error) (torn int, err error) {
	r := bufio.NewReaderSize(j.file, 1<<16)
	for n := 1; ; n++ {
		line, err := r.ReadBytes('\n')
		if errors.Is(err, io.EOF) {
			return len(line), nil
		}
		if err != nil {
			return 0, err
		}
		rec, err := decodeLine(line)
		if err == nil && (n == 1) != (rec.Header != nil) {
			err = errors.New("the header must be the first line and no other")
		}
		if err == nil {
			err = load(rec)
		}
		if err != nil {
			return 0, fmt.Errorf("line %d, byte %d: %w; restore the file or begin a new one", n, j.size, err)
		}
		j.size += int64(len(line))
	}
}

func decodeLine(line []byte) (*record, error) {
	if len(line) < crcPrefix+3 || line[crcPrefix-1] != ' ' {
		return nil, errors.New("not a ledger line")
	}
	body := line[crcPrefix : len(line)-1]
	if string(line[:crcPrefix-1]) != checksum(body) {
		return nil, errors.New("checksum does not match: the line was changed or damaged")
	}
	rec := &record{}
	dec := json.NewDecoder(bytes.NewReader(body))
	dec.DisallowUnknownFields()
	if err := dec.Decode(rec); err != nil {
		return nil, err
	}
	return rec, nil
}

func checksum(body []byte) string {
	return fmt.Sprintf("%08x", crc32.Checksum(body, castagnoli))
}

// append writes one line with one write(2). When it fails, nothing of the
// record is in the file, or the journal refuses everything from then on.
func (j *journal) append(rec *record) error {
	if j == nil {
		return nil
	}
	if j.broken != nil {
		return j.broken
	}
	j.buf.Reset()
	j.buf.WriteString("00000000 ")
	if err := json.NewEncoder(&j.buf).Encode(rec); err != nil { // adds the newline
		return fmt.Errorf("encoding a ledger line: %w", err)
	}
	line := j.buf.Bytes()
	putHex(line[:crcPrefix-1], crc32.Checksum(line[crcPrefix:len(line)-1], castagnoli))
	_, err := j.file.Write(line)
	if err == nil && j.sync {
		err = j.file.Sync()
	}
	if err == nil {
		j.size += int64(len(line))
		return nil
	}
	if cut := j.rewind(); cut != nil {
		j.broken = fmt.Errorf("ledger file is in an unknown state: %w", errors.Join(err, cut))
	}
	return err
}

func (j *journal) rewind() error {
	if err := j.file.Truncate(j.size); err != nil {
		return err
	}
	_, err := j.file.Seek(j.size, io.SeekStart)
	return err
}

func putHex(dst []byte, x uint32) {
	const digits = "0123456789abcdef"
	for i := len(dst) - 1; i >= 0; i-- {
		dst[i] = digits[x&15]
		x >>= 4
	}
}

func (j *journal) close() error {
	if j == nil {
		return nil
	}
	return j.file.Close()
}
