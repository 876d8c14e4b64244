! SPDX-License-Identifier: BSD-2-Clause
! A number goes around all processes, each adds one. The first says whose library it was.
program ring
    use mpi
    implicit none
    integer :: rank, processes, token, length, error, status(MPI_STATUS_SIZE), window
    integer(kind=MPI_ADDRESS_KIND) :: bytes
    integer :: memory(4)
    character(len=MPI_MAX_LIBRARY_VERSION_STRING) :: version

    call MPI_Init(error)
    call MPI_Comm_rank(MPI_COMM_WORLD, rank, error)
    call MPI_Comm_size(MPI_COMM_WORLD, processes, error)
    token = 0
    if (rank > 0) call MPI_Recv(token, 1, MPI_INTEGER, rank - 1, 5, MPI_COMM_WORLD, status, error)
    token = token + 1
    if (processes > 1) call MPI_Send(token, 1, MPI_INTEGER, mod(rank + 1, processes), 5, MPI_COMM_WORLD, error)
    if (rank == 0 .and. processes > 1) then
        call MPI_Recv(token, 1, MPI_INTEGER, processes - 1, 5, MPI_COMM_WORLD, status, error)
    end if
    bytes = 16
    call MPI_Win_create(memory, bytes, 4, MPI_INFO_NULL, MPI_COMM_WORLD, window, error)
    call MPI_Win_free(window, error)
    if (rank == 0) then
        call MPI_Get_library_version(version, length, error)
        print '(a,a,i0)', version(1:index(version, ' ') - 1), ' ring of ', token
    end if
    call MPI_Finalize(error)
end program
