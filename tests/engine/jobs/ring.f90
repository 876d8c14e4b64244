! SPDX-License-Identifier: BSD-2-Clause
! A token round a ring, in Fortran, compiled by another MPI: sentinels, statuses and handles must arrive as they are meant.
program ring
    use mpi
    implicit none
    integer :: rank, size, ierror, token, got, status(MPI_STATUS_SIZE), requests(2), n, i, faults
    double precision :: values(100), received(100)

    call MPI_Init(ierror)
    call MPI_Comm_rank(MPI_COMM_WORLD, rank, ierror)
    call MPI_Comm_size(MPI_COMM_WORLD, size, ierror)
    faults = 0
    token = rank
    do i = 1, size
        call MPI_Irecv(got, 1, MPI_INTEGER, modulo(rank - 1, size), 7, MPI_COMM_WORLD, requests(1), ierror)
        call MPI_Isend(token, 1, MPI_INTEGER, modulo(rank + 1, size), 7, MPI_COMM_WORLD, requests(2), ierror)
        call MPI_Waitall(2, requests, MPI_STATUSES_IGNORE, ierror)
        token = got
    end do
    if (token /= rank) faults = faults + 1

    values = dble(rank) + 0.5d0
    call MPI_Sendrecv(values, 100, MPI_DOUBLE_PRECISION, modulo(rank + 1, size), 8, received, 100, &
        MPI_DOUBLE_PRECISION, MPI_ANY_SOURCE, 8, MPI_COMM_WORLD, status, ierror)
    call MPI_Get_count(status, MPI_DOUBLE_PRECISION, n, ierror)
    if (n /= 100 .or. status(MPI_SOURCE) /= modulo(rank - 1, size) .or. status(MPI_TAG) /= 8) faults = faults + 1
    if (any(received /= dble(modulo(rank - 1, size)) + 0.5d0)) faults = faults + 1
    call MPI_Send(token, 1, MPI_INTEGER, MPI_PROC_NULL, 0, MPI_COMM_WORLD, ierror)

    if (rank == 0) then
        do i = 1, size - 1
            call MPI_Recv(n, 1, MPI_INTEGER, i, 9, MPI_COMM_WORLD, MPI_STATUS_IGNORE, ierror)
            faults = faults + n
        end do
        if (faults == 0) print '(A)', 'No Errors, digest 0000000000000000'
    else
        call MPI_Send(faults, 1, MPI_INTEGER, 0, 9, MPI_COMM_WORLD, ierror)
    end if
    call MPI_Finalize(ierror)
    if (faults /= 0) stop 1
end program
