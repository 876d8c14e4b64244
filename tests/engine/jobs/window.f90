! SPDX-License-Identifier: BSD-2-Clause
! One-sided communication from Fortran, through the layer that another MPI's package brings.
program window
    use mpi
    implicit none
    integer :: ierr, rank, size, win, right, left, i, keyval, kept
    integer, dimension(4), volatile :: memory
    integer, dimension(4) :: values
    integer(kind=MPI_ADDRESS_KIND) :: bytes, attribute, extra
    logical :: found
    integer :: wrong, all_wrong

    wrong = 0
    call MPI_Init(ierr)
    call MPI_Comm_rank(MPI_COMM_WORLD, rank, ierr)
    call MPI_Comm_size(MPI_COMM_WORLD, size, ierr)
    right = modulo(rank + 1, size)
    left = modulo(rank + size - 1, size)
    memory = 0
    bytes = 16
    call MPI_Win_create(memory, bytes, 4, MPI_INFO_NULL, MPI_COMM_WORLD, win, ierr)
    call MPI_Win_get_attr(win, MPI_WIN_SIZE, attribute, found, ierr)
    if (.not. found .or. attribute /= 16) wrong = wrong + 1
    call MPI_Win_get_attr(win, MPI_WIN_DISP_UNIT, attribute, found, ierr)
    if (.not. found .or. attribute /= 4) wrong = wrong + 1
    call MPI_Comm_get_attr(MPI_COMM_WORLD, MPI_TAG_UB, attribute, found, ierr)
    if (.not. found .or. attribute < 32767) wrong = wrong + 1
    call MPI_Comm_get_attr(MPI_COMM_WORLD, MPI_IO, attribute, found, ierr)
    if (.not. found .or. attribute /= MPI_ANY_SOURCE) wrong = wrong + 1
    extra = 0
    call MPI_Win_create_keyval(MPI_WIN_NULL_COPY_FN, MPI_WIN_NULL_DELETE_FN, keyval, extra, ierr)
    attribute = 4711
    call MPI_Win_set_attr(win, keyval, attribute, ierr)
    attribute = 0
    call MPI_Win_get_attr(win, keyval, attribute, found, ierr)
    if (.not. found .or. attribute /= 4711) wrong = wrong + 1
    call MPI_Win_free_keyval(keyval, ierr)

    call MPI_Win_fence(0, win, ierr)
    do i = 1, 4
        values(i) = 100 * rank + i
    end do
    call MPI_Put(values, 4, MPI_INTEGER, right, 0_MPI_ADDRESS_KIND, 4, MPI_INTEGER, win, ierr)
    call MPI_Win_fence(0, win, ierr)
    do i = 1, 4
        if (memory(i) /= 100 * left + i) wrong = wrong + 1
    end do
    call MPI_Win_fence(MPI_MODE_NOSUCCEED, win, ierr)
    memory(1) = 0
    call MPI_Barrier(MPI_COMM_WORLD, ierr)
    call MPI_Win_lock(MPI_LOCK_SHARED, 0, 0, win, ierr)
    values(1) = 1
    call MPI_Fetch_and_op(values, kept, MPI_INTEGER, 0, 0_MPI_ADDRESS_KIND, MPI_SUM, win, ierr)
    call MPI_Win_unlock(0, win, ierr)
    if (kept < 0 .or. kept >= size) wrong = wrong + 1
    call MPI_Barrier(MPI_COMM_WORLD, ierr)
    if (rank == 0 .and. memory(1) /= size) wrong = wrong + 1
    call MPI_Win_free(win, ierr)
    if (win /= MPI_WIN_NULL) wrong = wrong + 1
    call MPI_Reduce(wrong, all_wrong, 1, MPI_INTEGER, MPI_SUM, 0, MPI_COMM_WORLD, ierr)
    if (rank == 0 .and. all_wrong == 0) print '(A)', 'No Errors, digest 0000000000000000'
    if (rank == 0 .and. all_wrong /= 0) print *, all_wrong, ' errors'
    call MPI_Finalize(ierr)
end program
