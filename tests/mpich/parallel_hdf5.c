/* SPDX-License-Identifier: BSD-2-Clause
   Parallel HDF5: every process writes rows that lie between those of the others, reads those of its neighbour, and then
   a block of columns that all have written; contiguous and in chunks that fit no process' part, compressed too, each
   process for itself and all together. Every number is checked. */
#include <hdf5.h>
#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>

enum { rows = 50, columns = 333 };
enum { plain, chunked, compressed };

static int rank, size, errors;

static void must(hid_t answer) { errors += answer < 0; }

static void read_rows(hid_t set, hid_t how) {
    const hsize_t neighbour = (hsize_t)((rank + 1) % size);
    const hsize_t start[2] = {neighbour, 0}, stride[2] = {(hsize_t)size, 1}, count[2] = {rows, columns};
    double (*got)[columns] = malloc(sizeof(double[rows][columns]));
    hid_t file_space = H5Dget_space(set), memory = H5Screate_simple(2, count, NULL);
    must(H5Sselect_hyperslab(file_space, H5S_SELECT_SET, start, stride, count, NULL));
    must(H5Dread(set, H5T_NATIVE_DOUBLE, memory, file_space, how, got));
    for (int i = 0; i < rows; i++)
        for (int j = 0; j < columns; j++) errors += got[i][j] != 1000.0 * (double)(i * size + (int)neighbour) + j;
    H5Sclose(file_space);
    H5Sclose(memory);
    free(got);
}

static void read_columns(hid_t set, hid_t how) {
    const int first = rank * columns / size, width = (rank + 1) * columns / size - first;
    const hsize_t start[2] = {0, (hsize_t)first}, count[2] = {(hsize_t)(rows * size), (hsize_t)width};
    double* got = malloc(sizeof(double) * (size_t)(rows * size * width));
    hid_t file_space = H5Dget_space(set), memory = H5Screate_simple(2, count, NULL);
    must(H5Sselect_hyperslab(file_space, H5S_SELECT_SET, start, NULL, count, NULL));
    must(H5Dread(set, H5T_NATIVE_DOUBLE, memory, file_space, how, got));
    for (int i = 0; i < rows * size; i++)
        for (int j = 0; j < width; j++) errors += got[i * width + j] != 1000.0 * i + first + j;
    H5Sclose(file_space);
    H5Sclose(memory);
    free(got);
}

static void one_file(int collective, int layout) {
    const char* name = "parallel_hdf5.h5";
    const hsize_t extent[2] = {(hsize_t)(rows * size), columns}, chunk[2] = {17, 40};
    const hsize_t start[2] = {(hsize_t)rank, 0}, stride[2] = {(hsize_t)size, 1}, count[2] = {rows, columns};
    hid_t access = H5Pcreate(H5P_FILE_ACCESS), how = H5Pcreate(H5P_DATASET_XFER);
    must(H5Pset_fapl_mpio(access, MPI_COMM_WORLD, MPI_INFO_NULL));
    must(H5Pset_dxpl_mpio(how, collective ? H5FD_MPIO_COLLECTIVE : H5FD_MPIO_INDEPENDENT));
    if (collective) {
        must(H5Pset_all_coll_metadata_ops(access, 1));
        must(H5Pset_coll_metadata_write(access, 1));
    }
    hid_t file = H5Fcreate(name, H5F_ACC_TRUNC, H5P_DEFAULT, access);
    must(file);
    hid_t file_space = H5Screate_simple(2, extent, NULL), memory = H5Screate_simple(2, count, NULL);
    hid_t make = H5Pcreate(H5P_DATASET_CREATE);
    if (layout != plain) must(H5Pset_chunk(make, 2, chunk));
    if (layout == compressed) must(H5Pset_deflate(make, 4));
    hid_t set = H5Dcreate2(file, "numbers", H5T_NATIVE_DOUBLE, file_space, H5P_DEFAULT, make, H5P_DEFAULT);
    must(set);
    must(H5Sselect_hyperslab(file_space, H5S_SELECT_SET, start, stride, count, NULL));
    double (*mine)[columns] = malloc(sizeof(double[rows][columns]));
    for (int i = 0; i < rows; i++)
        for (int j = 0; j < columns; j++) mine[i][j] = 1000.0 * (double)(i * size + rank) + j;
    must(H5Dwrite(set, H5T_NATIVE_DOUBLE, memory, file_space, how, mine));
    free(mine);
    must(H5Dclose(set));
    must(H5Fclose(file));

    file = H5Fopen(name, H5F_ACC_RDONLY, access);
    must(file);
    set = H5Dopen2(file, "numbers", H5P_DEFAULT);
    must(set);
    read_rows(set, how);
    read_columns(set, how);
    must(H5Dclose(set));
    must(H5Fclose(file));
    H5Sclose(file_space);
    H5Sclose(memory);
    H5Pclose(make);
    H5Pclose(how);
    H5Pclose(access);
}

int main(int argc, char** argv) {
    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &size);
    int files = 0, all = 0;
    for (int collective = 0; collective < 2; collective++)
        for (int layout = plain; layout <= compressed; layout++) {
            /* Filters are for all processes together only. */
            if (layout == compressed && !collective) continue;
            one_file(collective, layout);
            files++;
        }
    MPI_Allreduce(&errors, &all, 1, MPI_INT, MPI_SUM, MPI_COMM_WORLD);
    if (rank == 0) printf("%d files written and read, %d errors\n", files, all);
    MPI_Finalize();
    return all != 0;
}
