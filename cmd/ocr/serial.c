// What Tesseract asks of other libraries and this program answers in their place: the dynamic linker takes what a program
// defines before what libraries define. Where it does not (macOS), the libraries answer, slower and with the same words.

#include <leptonica/allheaders.h>

// Tesseract packs the pixels of each line as PNG, and unpacks them at once. Leptonica knows its own raw format by its first bytes.
l_ok pixWriteMem(l_uint8 **data, size_t *size, PIX *pix, l_int32 format) { return pixWriteMemSpix(data, size, pix); }

// OpenMP with one thread. libgomp makes a system call after each column of a line, to wake threads that do not exist.
static _Thread_local unsigned section, sections;

void GOMP_parallel(void (*f)(void *), void *data, unsigned threads, unsigned flags) { f(data); }

void GOMP_parallel_sections(void (*f)(void *), void *data, unsigned threads, unsigned count, unsigned flags) {
	unsigned outer = section, outers = sections;
	section = 0, sections = count;
	f(data);
	section = outer, sections = outers;
}

unsigned GOMP_sections_next(void) { return section < sections ? ++section : 0; }
void GOMP_sections_end_nowait(void) {}
int omp_get_num_threads(void) { return 1; }
int omp_get_thread_num(void) { return 0; }
