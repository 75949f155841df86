package batch

import "crypto/sha256"

// sumsBlock is how many sums are kept together: a list that grew by copying itself would take several times its size on the way.
const sumsBlock = 1024

// chunkSums are the sums of a file's chunks, in order.
type chunkSums struct {
	blocks []*[sumsBlock][sha256.Size]byte
	n      int
}

func (s *chunkSums) add(sum [sha256.Size]byte) {
	if s.n%sumsBlock == 0 {
		s.blocks = append(s.blocks, new([sumsBlock][sha256.Size]byte))
	}
	s.blocks[s.n/sumsBlock][s.n%sumsBlock] = sum
	s.n++
}

// is reports whether the i-th chunk has the sum.
func (s *chunkSums) is(i int, sum [sha256.Size]byte) bool {
	return i < s.n && s.blocks[i/sumsBlock][i%sumsBlock] == sum
}
